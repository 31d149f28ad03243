package sqlstore

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/delaytask/delaytask/internal/row"
)

const tokenTable = "delay_task_token"

var (
	// ErrTokenExists is returned when a token is to be created under a name that another one has.
	ErrTokenExists = errors.New("there is a token of this name already")
	// ErrNotFound is returned when a token is to be deleted that is not there.
	ErrNotFound = errors.New("there is no token of this name")
)

// CreateToken stores a token. It returns [ErrTokenExists] when another one has its name. The same token may be stored
// twice.
func (s *Store) CreateToken(ctx context.Context, t row.AccessToken) error {
	op := "create the token " + t.Name
	query, args, err := s.own.createToken(t)
	if err != nil {
		return refusedTo(op, err)
	}
	return repeat(ctx, func() error {
		return s.keep.do(ctx, op, func(ctx context.Context, conn *sql.Conn) error {
			_, err := conn.ExecContext(ctx, query, args...)
			if !isDuplicate(err) {
				return err
			}
			there, _, err := s.own.readTokens(ctx, conn)
			same := func(other row.AccessToken) bool { return other.Name == t.Name && other.Hash == t.Hash }
			if err != nil || slices.ContainsFunc(there, same) { // an insert whose reply was lost
				return err
			}
			return refusedTo(op, ErrTokenExists)
		})
	})
}

func (d dialect) createToken(t row.AccessToken) (string, []any, error) {
	tags, tagsErr := bindList(t.Tags)
	verbs, verbsErr := bindList(t.Verbs)
	return "INSERT INTO " + tokenTable + " (name, hash, tags, verbs, create_time, expire_time)" +
			" VALUES (" + d.bindText + ", UNHEX(?), " + d.bindText + ", " + d.bindText + ", " + d.now + ", ?)",
		[]any{t.Name, hexed(t.Hash), tags, verbs, t.Expires}, errors.Join(tagsErr, verbsErr)
}

// DeleteToken deletes a token. It returns [ErrNotFound] when there is none of the name.
func (s *Store) DeleteToken(ctx context.Context, name string) error {
	op := "delete the token " + name
	query, args := s.own.deleteToken(name)
	deleted, err := s.keep.execute(ctx, op, query, args)
	if err == nil && deleted == 0 {
		return refusedTo(op, ErrNotFound)
	}
	return err
}

func (d dialect) deleteToken(name string) (string, []any) {
	return fmt.Sprintf(d.deleteFrom, tokenTable) + " WHERE t.name = " + d.bindText, []any{name}
}

// AccessTokens returns all tokens by name, expired ones included, and the database's time by which they expire.
func (s *Store) AccessTokens(ctx context.Context) ([]row.AccessToken, row.Reading, error) {
	tokens, reading, err := s.dialect.readTokens(ctx, s.db)
	return tokens, reading, classify("read tokens", err)
}

// tokenRecord is a row of delay_task_token and a reading of the clock. All but the clock is NULL when there is no
// token.
type tokenRecord struct {
	DBTime   sql.RawBytes `db:"db_time"`
	DBServer sql.RawBytes `db:"db_server"`

	Name    sql.RawBytes `db:"name"`
	Hash    sql.RawBytes `db:"hash"`
	Tags    sql.RawBytes `db:"tags"`
	Verbs   sql.RawBytes `db:"verbs"`
	Created sql.RawBytes `db:"create_time"`
	Expires sql.RawBytes `db:"expire_time"`
}

// token decodes what can be read: one broken row must not disable the other tokens. What cannot be read allows nothing:
// the token has no tags or verbs, a hash of zeros that no token has, or an expiry long ago.
func (r *tokenRecord) token() row.AccessToken {
	var d, expiry decoder
	t := row.AccessToken{
		Name: string(r.Name), Hash: d.hash("hash", string(r.Hash)), Tags: readList(r.Tags), Verbs: readList(r.Verbs),
		Created: d.time("create_time", r.Created), Expires: expiry.time("expire_time", r.Expires),
	}
	if expiry.err != nil || r.Expires != nil && t.Expires.IsZero() {
		t.Expires = row.MinTime
	}
	return t
}

func (d dialect) readTokens(ctx context.Context, q queryer) ([]row.AccessToken, row.Reading, error) {
	columns := []string{
		"c.*", d.text("name"), "HEX(hash) AS hash", d.text("tags"), d.text("verbs"), d.time("create_time"),
		d.time("expire_time"),
	}
	query := "SELECT " + strings.Join(columns, ", ") +
		" FROM (SELECT " + d.reading() + ") c LEFT JOIN " + tokenTable + " ON 1 = 1 ORDER BY " + tokenTable + ".name"
	var tokens []row.AccessToken
	var reading row.Reading
	err := scan(ctx, q, query, nil, func(r *tokenRecord) (err error) {
		if reading, err = (&record{DBTime: r.DBTime, DBServer: r.DBServer}).reading(); err != nil || r.Name == nil {
			return err
		}
		tokens = append(tokens, r.token())
		return nil
	})
	return tokens, reading, err
}

// unhexed reads hexadecimal. It returns nil for NULL, which SQLite writes as an empty text.
func unhexed(text []byte) []byte {
	if len(text) == 0 {
		return nil
	}
	b, err := hex.DecodeString(string(text))
	if err != nil {
		return nil
	}
	return b
}
