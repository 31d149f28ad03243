package sqlstore

import (
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net"
	"regexp"
	"slices"
	"strconv"
	"syscall"

	"github.com/go-sql-driver/mysql"
	"modernc.org/sqlite"

	"github.com/delaytask/delaytask/internal/row"
)

// fault is what an error means: what is known of the statement, and what an operator can do.
type fault struct {
	class row.Class
	hint  string
}

// classify gives every error of a database its class, by number and never by text, and says what was tried. It returns
// nil for nil; sql.ErrNoRows, which is an answer, and what has its class already come back as they are.
func classify(op string, err error) error {
	if err == nil || errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if _, ok := errors.AsType[*row.Error](err); ok {
		return err
	}
	f := faultOf(err)
	return &row.Error{Class: f.class, Op: op, Hint: f.hint, Err: err}
}

// faultOf calls everything unknown that it does not know: a lost reply, an ended context and a network that broke in
// the middle all leave open whether the statement was applied.
func faultOf(err error) fault {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		if collided(e) {
			return fault{class: row.ClassNotApplied}
		}
		return mysqlFaults[e.Number]
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return sqliteFault(e.Code())
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "dial" {
		return fault{row.ClassNotApplied, dialHint(e)} // nothing was sent
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fault{row.ClassOperator, "the server's certificate is not trusted: correct it, or the tls parameter of the DSN"}
	}
	for _, d := range driverFaults {
		if errors.Is(err, d.err) {
			return d.fault
		}
	}
	return fault{}
}

// collided reports whether the server took the statement back because another one was there first.
func collided(err error) bool {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && (slices.Contains(collisions, e.Number) || e.Number == duringCommit && engineError(e.Message) == engineDeadlock)
}

// A member of a replication group answers a transaction that made way for another member's with an error during COMMIT,
// and only the engine's number in it tells that from one whose outcome is not known.
const (
	duringCommit   = 1180
	engineDeadlock = 149
)

var firstNumber = regexp.MustCompile(`\d+`)

// engineError is the number that the storage engine gave an error, 0 where there is none.
func engineError(message string) int {
	n, _ := strconv.Atoi(firstNumber.FindString(message)) // digits, or none
	return n
}

func dialHint(err *net.OpError) string {
	_, unresolved := errors.AsType[*net.DNSError](err)
	switch {
	case unresolved:
		return "the host name cannot be resolved: correct the DSN, or the name service"
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT):
		return "nothing listens there: start the server, or correct the address in the DSN"
	case err.Timeout():
		return "no answer: check the address, the network and the firewall"
	default:
		return "check the address in the DSN and the network"
	}
}

// driverFaults holds the errors that drivers make themselves.
var driverFaults = []struct {
	err error
	fault
}{
	{driver.ErrBadConn, fault{row.ClassNotApplied, "the connection was closed, or the server is read-only, as after a failover"}},
	{sql.ErrConnDone, fault{row.ClassNotApplied, ""}},
	{sql.ErrTxDone, fault{row.ClassCaller, "the transaction was committed or rolled back before"}},
	{mysql.ErrPktTooLarge, fault{row.ClassCaller, hintPacket}},
	{mysql.ErrNoTLS, fault{row.ClassOperator, "switch TLS on at the server, or off in the DSN"}},
	{mysql.ErrNativePassword, fault{row.ClassOperator, hintAccount}},
	{mysql.ErrCleartextPassword, fault{row.ClassOperator, hintAccount}},
	{mysql.ErrOldPassword, fault{row.ClassOperator, hintAccount}},
	{mysql.ErrUnknownPlugin, fault{row.ClassOperator, hintAccount}},
	{mysql.ErrOldProtocol, fault{row.ClassOperator, hintServer}},
}
