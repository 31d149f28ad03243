package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strings"
)

// Many products speak the protocol of MySQL, and some say that they are a MySQL. So a start looks at what the server
// does, too: every MySQL and MariaDB has the engines InnoDB and MEMORY, and the others that are known have not.

// recognize asks a server what it is.
func recognize(ctx context.Context, q queryer) (version, error) {
	said, err := readTexts(ctx, q, "SELECT VERSION() AS version, @@version_comment AS comment")
	if err != nil || len(said) == 0 {
		return version{}, err
	}
	engines, err := readTexts(ctx, q, "SHOW ENGINES")
	if err != nil {
		return version{}, err
	}
	var names []string
	for _, e := range engines {
		names = append(names, strings.ToUpper(e["engine"]))
	}
	answers := func(query string) bool {
		_, err := readTexts(ctx, q, query)
		return err == nil
	}
	return unmasked(parseVersion(said[0]["version"], said[0]["comment"]), names, answers), ctx.Err()
}

// unmasked is what a server is that says it is v, has the engines, and answers some queries.
func unmasked(v version, engines []string, answers func(query string) bool) version {
	switch {
	case v.name != aMySQL && v.name != aMariaDB:
	case slices.Contains(engines, "INNODB") && slices.Contains(engines, "MEMORY"):
	case answers("SHOW VITESS_TARGET"):
		v.name = aVitess
	case answers("SELECT TIDB_VERSION()"):
		v.name = aTiDB
	default:
		v.name = ""
	}
	return v
}

// checkProduct warns of servers on which delaytask is not tested, and refuses shards.
func (s *Store) checkProduct(ctx context.Context) ([]Warning, error) {
	v, err := recognize(ctx, s.db)
	switch {
	case err != nil:
		return nil, err
	case v.name == aVitess:
		return nil, refuseSharded(ctx, s.db)
	case v.name == aTiDB || v.name == "":
		return []Warning{{"untested", "the server is " + v.String(),
			"delaytask is not tested on it, and promises nothing",
			"use MySQL, MariaDB or an unsharded keyspace of Vitess"}}, nil
	}
	return nil, nil
}

// RefuseSharded returns an error like the one of [Store.Check] when the tasks are, or would be, on shards of Vitess.
func RefuseSharded(ctx context.Context, db *sql.DB, kind Kind) error {
	if kind.Embedded() {
		return nil
	}
	v, err := recognize(ctx, db)
	if err == nil && v.name == aVitess {
		err = refuseSharded(ctx, db)
	}
	return classify("read whether the table of tasks is sharded", err)
}

// refuseSharded asks vtgate where the statements go. Routing rules may lead to another keyspace than the DSN names.
func refuseSharded(ctx context.Context, q queryer) error {
	plans, err := readTexts(ctx, q, "VEXPLAIN PLAN SELECT id FROM "+table+" WHERE tag = ''")
	for _, p := range plans {
		if keyspace := shardedIn(p["json"]); keyspace != "" {
			return refuseKeyspace(keyspace)
		}
	}
	if err == nil {
		return nil
	}
	// A sharded keyspace knows no table before it is told of it, and would make one on each shard.
	keyspaces, err := readTexts(ctx, q, "SHOW VSCHEMA KEYSPACES")
	if err != nil {
		return err
	}
	targets, err := firsts[string](ctx, q, clause{sql: "SELECT DATABASE()"})
	for _, k := range keyspaces {
		here := func(target string) bool { return keyspaceOf(target) == k["keyspace"] }
		if k["sharded"] == "true" && slices.ContainsFunc(targets, here) {
			return refuseKeyspace(k["keyspace"])
		}
	}
	return err
}

// keyspaceOf cuts a shard and a type of tablet off what a connection of vtgate is for.
func keyspaceOf(target string) string {
	if end := strings.IndexAny(target, ":/@"); end >= 0 {
		return target[:end]
	}
	return target
}

func refuseKeyspace(name string) error {
	return refuse("point the DSN at an unsharded keyspace",
		"%s is in the sharded keyspace %s of Vitess: a key would be unique within a shard only, and tasks that are due"+
			" would not be found", table, name)
}

// shardedIn returns the keyspace that a plan of vtgate reads, if that is sharded.
func shardedIn(plan string) string {
	var read struct {
		Keyspace struct {
			Name    string
			Sharded bool
		}
		Inputs []json.RawMessage
	}
	if err := json.Unmarshal([]byte(plan), &read); err != nil {
		return ""
	}
	if read.Keyspace.Sharded {
		return read.Keyspace.Name
	}
	for _, input := range read.Inputs {
		if name := shardedIn(string(input)); name != "" {
			return name
		}
	}
	return ""
}
