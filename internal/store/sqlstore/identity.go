package sqlstore

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
)

// What [Inspector.Show] reads.
const (
	SessionVariables = "SESSION VARIABLES" // as a connection of the pool sees them
	GlobalVariables  = "GLOBAL VARIABLES"
	GlobalStatus     = "GLOBAL STATUS"
)

// identity is what a server says of itself.
type identity struct {
	server   string // as readings name it
	database string // the same for servers that are one database
	writable bool   // a replica, or a primary that was demoted, is not
	name     string // as heartbeats name it: the server, or the cluster whose member it is
	most     int    // connections that all accounts, or this one, may have; 0: not known
}

// told lists the variables that tell servers apart. One that a server does not know is missing.
var told = []string{
	"version", "version_comment", "hostname", "port", "server_id", "server_uuid", "server_uid", "datadir", "wsrep_on",
	"group_replication_group_name", "read_only", "super_read_only", "innodb_read_only",
	"max_connections", "max_user_connections",
}

// identify asks the server of a connection. Members of a Galera cluster or of a replication group are one database. So
// are all servers of TiDB, and the shards of Vitess.
func identify(ctx context.Context, q queryer) (identity, error) {
	v, err := show(ctx, q, SessionVariables, told...)
	if err != nil {
		return identity{}, err
	}
	is := func(name string) bool { return v[name] == "1" || strings.EqualFold(v[name], "ON") }
	id := identity{
		server:   v["hostname"] + ":" + v["port"] + ":" + v["server_id"],
		writable: !slices.ContainsFunc([]string{"read_only", "super_read_only", "innodb_read_only"}, is),
	}
	for _, name := range []string{"max_connections", "max_user_connections"} {
		if most, err := strconv.Atoi(v[name]); err == nil && most > 0 && (id.most == 0 || most < id.most) {
			id.most = most
		}
	}
	group := v["group_replication_group_name"]
	if is("wsrep_on") {
		status, err := show(ctx, q, GlobalStatus, "wsrep_cluster_state_uuid", "wsrep_cluster_status")
		if err != nil {
			return identity{}, err
		}
		group = status["wsrep_cluster_state_uuid"]
		id.writable = id.writable && status["wsrep_cluster_status"] == "Primary"
	}
	if product := parseVersion(v["version"], v["version_comment"]).name; product == aTiDB || product == aVitess {
		group = product
	}
	id.name = cmp.Or(group, id.server)
	id.database = cmp.Or(group, strings.Join([]string{id.server, v["server_uuid"], v["server_uid"], v["datadir"]}, " "))
	return id, nil
}

// show returns variables or counters of a server by their names in lower case. It leaves out those that the server does
// not know.
func show(ctx context.Context, q queryer, what string, names ...string) (map[string]string, error) {
	query := "SHOW " + what + " WHERE Variable_name IN (" + quoted(names) + ")"
	rows, err := readTexts(ctx, q, query)
	values := make(map[string]string, len(rows))
	for _, r := range rows {
		values[strings.ToLower(r["variable_name"])] = r["value"]
	}
	return values, err
}
