package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/delaytask/delaytask/internal/row"
)

var (
	// ErrTokenExists is returned when another token has the name of a new one.
	ErrTokenExists = errors.New("there is a token of this name already")
	// ErrNotFound is returned when the token to delete is not there.
	ErrNotFound = errors.New("there is no token of this name")
)

// CreateToken stores a token, and reports whether it was there. It returns [ErrTokenExists] when another one has its
// name. A whole token ends the bootstrap tokens.
func (s *Store) CreateToken(ctx context.Context, t row.AccessToken) (there bool, err error) {
	op := "create the token " + t.Name
	d := s.own
	steps := []step{{clause{
		"INSERT INTO " + tokenTable + " (name, hash, tags, verbs, create_time, expire_time)" +
			" VALUES (" + d.bindText + ", UNHEX(?), " + d.bindText + ", " + d.bindText + ", " + d.now + ", ?)",
		[]any{t.Name, hexed(t.Hash), bindList(t.Tags), bindList(t.Verbs), t.Expires},
	}, anyRows}}
	if t.Whole() {
		steps = append(steps, step{d.endBootstrap(), anyRows})
	}
	err = repeat(ctx, func() error {
		return s.lanes[chores].do(ctx, op, func(ctx context.Context, conn *sql.Conn) error {
			_, err := d.transact(ctx, conn, op, steps)
			if !isDuplicate(err) {
				return err
			}
			all, _, err := d.readTokens(ctx, conn)
			there = slices.ContainsFunc(all, func(other row.AccessToken) bool {
				return other.Name == t.Name && other.Hash == t.Hash // its reply was lost, or another process was first
			})
			if err != nil || there {
				return err
			}
			return refusedTo(op, ErrTokenExists)
		})
	})
	return there, err
}

// DeleteToken deletes a token; of a bootstrap token it keeps the row, as ended. It returns [ErrNotFound] when no token
// has the name.
func (s *Store) DeleteToken(ctx context.Context, name string) error {
	op := "delete the token " + name
	done, err := s.lanes[chores].execute(ctx, op, s.own.revokeBootstrap(name))
	if err != nil || done > 0 {
		return err
	}
	done, err = s.lanes[chores].execute(ctx, op, s.own.deleteToken(name))
	if err == nil && done == 0 {
		return refusedTo(op, ErrNotFound)
	}
	return err
}

// EndBootstrap ends all bootstrap tokens.
func (s *Store) EndBootstrap(ctx context.Context) error {
	return s.lanes[chores].write(ctx, "end the bootstrap tokens", s.own.endBootstrap())
}

func (d dialect) deleteToken(name string) clause {
	return d.deleteRows(tokenTable, "t.name = "+d.bindText, name)
}

// endBootstrap enters by the beginning that the names of all bootstrap tokens have.
func (d dialect) endBootstrap() clause {
	return d.endTokens("t.name >= "+d.bindText+" AND t.name < "+d.bindText+" AND t.expire_time IS NULL",
		row.BootstrapPrefix, row.BootstrapPrefix[:len(row.BootstrapPrefix)-1]+".")
}

func (d dialect) revokeBootstrap(name string) clause {
	return d.endTokens("t.name = "+d.bindText, name)
}

// endTokens ends those bootstrap tokens that the condition selects.
func (d dialect) endTokens(condition string, args ...any) clause {
	return clause{"UPDATE " + tokenTable + " AS t" + d.byID + " SET expire_time = " + d.now + " WHERE " + condition +
		" AND t.verbs = " + d.bindText, append(args, bindList([]string{row.BootstrapVerb}))}
}

// AccessTokens returns all tokens by name, expired ones included, and the database's time of the reading.
func (s *Store) AccessTokens(ctx context.Context) ([]row.AccessToken, row.Reading, error) {
	all, reading, err := s.dialect.readTokens(ctx, s.db)
	return all, reading, classify("read tokens", err)
}

// One broken row must not disable the other tokens. What cannot be read allows nothing: the token has no tags or verbs,
// a hash of zeros that no token has, or an expiry long ago.
var tokens = newTable(tokenTable,
	chars("name", func(t *row.AccessToken) *string { return &t.Name }),
	hash("hash", func(t *row.AccessToken) *[32]byte { return &t.Hash }),
	list("tags", func(t *row.AccessToken) *[]string { return &t.Tags }),
	list("verbs", func(t *row.AccessToken) *[]string { return &t.Verbs }),
	moment("create_time", func(t *row.AccessToken) *row.Time { return &t.Created }),
	column[row.AccessToken]{
		name: "expire_time", form: aMoment,
		decode: func(d *decoder, t *row.AccessToken, raw []byte) {
			t.Expires = d.time("expire_time", raw)
			if raw != nil && t.Expires.IsZero() {
				t.Expires = row.MinTime
			}
		},
	},
)

func (d dialect) readTokens(ctx context.Context, q queryer) ([]row.AccessToken, row.Reading, error) {
	query := clause{sql: "SELECT c.*, " + tokens.list(d, "") + " FROM (SELECT " + d.reading() + ") c LEFT JOIN " +
		tokenTable + " ON 1 = 1 ORDER BY " + tokenTable + ".name"}
	return readAll(ctx, q, query, tokens)
}
