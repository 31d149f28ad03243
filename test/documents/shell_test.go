package documents

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

// exception is a command that no test can run.
type exception struct {
	command, why string
	instead      func(command string) string // is run in its place, and reads its arguments
}

// exceptions are told by how a command begins. The files and tests that it names must be there all the same.
var exceptions = []exception{
	{command: "go test", why: "this test is part of it"},
	{command: "go run ./cmd/delaytask demo", why: "TestThePictureShowsWhatTheDemoPrints runs the demo, " +
		"TestTheDemoServesADashboard the one with a dashboard"},
	{command: "go run ./examples/schedule", why: "it runs until it is stopped; TestSchedule runs it"},
	{command: "go -C bench run .", why: "it takes minutes, on a server; its module has tests of its own"},
	{command: "go run ./test/lab judge", why: "it judges the journal of a test that has failed"},
	{command: "sudo", why: "it changes the machine; TestTheDebianPackageComesAndGoes does so in a folder"},
	{command: "test/servers", why: "it installs servers; .ci/run does"},
	{command: "make", why: "it takes minutes to hours, some as root", instead: func(command string) string {
		return strings.Replace(command, "make", "make --dry-run", 1)
	}},
	{command: "delaytask bench", why: "it takes minutes, on a server", instead: func(command string) string {
		return command + " --help"
	}},
	{command: "delaytask cancel --tag", why: "it asks first", instead: func(command string) string {
		return command + " --yes"
	}},
}

var (
	remark     = regexp.MustCompile(`(?m)(^|\s)# .*$`)
	continued  = regexp.MustCompile(`\\\n\s*|\n[ \t]+`)
	assignment = regexp.MustCompile(`^(?:[A-Z_]+=(?:'[^']*'|\S*)\s+)+`)
)

// commands returns the commands of a block, each on one line.
func (b block) commands() (all []string) {
	text := continued.ReplaceAllString(remark.ReplaceAllString(b.text, ""), " ")
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// runs runs the commands in their order. Each must succeed.
func (b block) runs(t *testing.T) {
	need(t, "bash")
	s := newSession(t)
	defer s.stop()
	for _, command := range b.commands() {
		bare := assignment.ReplaceAllString(command, "")
		namesWhatIsThere(t, bare)
		i := slices.IndexFunc(exceptions, func(e exception) bool { return strings.HasPrefix(bare, e.command) })
		if i < 0 {
			s.run(command)
		} else if instead := exceptions[i].instead; instead != nil {
			s.run(instead(bare))
		}
	}
}

func namesWhatIsThere(t *testing.T, command string) {
	for _, name := range testName.FindAllString(command, -1) {
		if !testFuncs()[name] {
			t.Errorf("%s: the test %s is not there", command, name)
		}
	}
	for word := range strings.FieldsSeq(command) {
		path, local := strings.CutPrefix(strings.TrimSuffix(word, "..."), "./")
		if first, _, deep := strings.Cut(path, "/"); deep && first != "" && !local {
			_, err := os.Stat(filepath.Join(root, first))
			local = err == nil
		}
		if _, err := os.Stat(filepath.Join(root, path)); local && err != nil {
			t.Errorf("%s: %v", command, err)
		}
	}
}

// session is a shell in an empty folder, with an embedded database that has a failed task and a schedule.
type session struct {
	t         *testing.T
	dir, dsn  string
	service   *servertest.Process
	address   string // of the service
	id, token string // of the failed task, then of the last answer
}

func newSession(t *testing.T) *session {
	dir := t.TempDir()
	s := &session{t: t, dir: dir, dsn: "sqlite:" + filepath.Join(dir, "delaytask.db")}
	db := servertest.Open(t, s.dsn, scheduler.Config{})
	servertest.OK(t, db.Register("mail.send", processor.Func(func(context.Context, *delaytask.Task) error {
		return processor.Permanent(errors.New("no such user"))
	})))
	servertest.OK(t, db.Start(t.Context()))
	id, err := db.SaveDelayTask(t.Context(), "mail.send", nil, 0)
	servertest.OK(t, err)
	_, err = db.Wait(t.Context(), id)
	servertest.OK(t, err)
	nightly := delaytask.Cron("30 2 * * *", "Europe/Berlin")
	_, err = db.SaveSchedule(t.Context(), "report.nightly", nightly, "report.build", nil)
	servertest.OK(t, err)
	servertest.Stop(t, db)
	s.id = fmt.Sprint(id)
	return s
}

// run runs a command, and returns what it has said.
func (s *session) run(command string) string {
	s.t.Helper()
	switch {
	case strings.Contains(command, "delaytask serve"):
		s.serve(command)
		return ""
	case strings.HasPrefix(command, "curl"):
		need(s.t, "curl")
		if s.service == nil {
			s.serve("delaytask serve")
		}
	case strings.HasPrefix(command, "make"):
		need(s.t, "make")
	}
	out, err := s.bash(s.filled(command)).CombinedOutput()
	if err != nil || strings.Contains(string(out), `"success":false`) {
		s.t.Errorf("%s: %v\n%s", command, err, out)
	}
	for pattern, learned := range map[string]*string{`"id":"?(\d+)`: &s.id, `"token":"(\d+\.\d+)"`: &s.token} {
		if found := regexp.MustCompile(pattern).FindSubmatch(out); found != nil {
			*learned = string(found[1])
		}
	}
	return string(out)
}

var (
	anyToken = regexp.MustCompile(`\b\d{18}\.\d+\b`)
	anyID    = regexp.MustCompile(`\b(?:\d{18}|ID)\b`)
	receiver = regexp.MustCompile(`/v1/receivers/\d+\b`)
)

const exampleSecret = "whsec_c2VjcmV0IG9mIHRoaXMgdGVzdCwgbG9uZyBlbm91Z2g="

// filled has what only the reader can know in the place of examples.
func (s *session) filled(command string) string {
	command = strings.NewReplacer("user:password@tcp(db:3306)/shop", s.dsn, "127.0.0.1:8080", s.address,
		"localhost:8080", s.address, "/etc/prometheus", s.dir, "whsec_…", exampleSecret,
	).Replace(command)
	command = receiver.ReplaceAllString(command, "/v1/receivers/"+s.id)
	return anyID.ReplaceAllString(anyToken.ReplaceAllString(command, s.token), s.id)
}

// bash runs a script in the folder, with the variables that the scripts before have set.
func (s *session) bash(script string) *exec.Cmd {
	program := servertest.Build(s.t, "./cmd/delaytask")
	const before = `set -aeuo pipefail; if [ -e "$CURL_HOME/.set" ]; then . "$CURL_HOME/.set"; fi
trap 'export -p >"$CURL_HOME/.set"' EXIT; `
	cmd := exec.Command("bash", "-c", before+script)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"), "CURL_HOME="+s.dir,
		"DELAYTASK_DSN="+s.dsn, "DELAYTASK_SERVER_LISTEN=127.0.0.1:0", "DELAYTASK_SECRET=of this test, long enough")
	if strings.Contains(script, "make ") {
		cmd.Dir = root
	}
	return cmd
}

// serve starts a service in the place of the one before.
func (s *session) serve(command string) {
	s.t.Helper()
	s.stop()
	s.service = servertest.Launch(s.t, s.bash("exec env "+s.filled(command)))
	s.address = s.service.Says(`serves at http://([\d.:]+)`)
	const failing = "fail-with-body\nshow-error\nsilent\n" // a refused request must fail curl
	servertest.OK(s.t, os.WriteFile(filepath.Join(s.dir, ".curlrc"), []byte(failing), 0o600))
	s.service.Answers("http://" + s.address + "/readyz")
}

func (s *session) stop() {
	if s.service != nil {
		s.service.Stops()
	}
	s.service = nil
}
