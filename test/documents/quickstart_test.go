//go:build !race && unix

package documents

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/pod"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// TestQuickStarts follows each section of the page by its own text, as a reader does: it writes the files, types the
// commands, and must see what the page shows. In the place of Docker and Kubernetes it starts the program by what the
// commands, the Dockerfile and the manifests set.
func TestQuickStarts(t *testing.T) {
	t.Parallel()
	embedded := func(t *testing.T, f func(*testing.T, dbtest.Database)) {
		t.Run("sqlite", func(t *testing.T) { f(t, dbtest.New(t, dbtest.SQLite)) })
	}
	databases := map[string]func(*testing.T, func(*testing.T, dbtest.Database)){
		"A first program":          embedded,
		"An existing service":      dbtest.MySQLs,
		"A container beside MySQL": dbtest.Each,
		"Kubernetes":               dbtest.Each,
		"PHP, Python and Node":     embedded,
	}
	sections := strings.Split(read(t, filepath.Join(root, "docs/quickstart.md")), "\n## ")[1:]
	if len(sections) != len(databases) {
		t.Errorf("the page has %d sections, the test knows %d", len(sections), len(databases))
	}
	for _, section := range sections {
		title, _, _ := strings.Cut(section, "\n")
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			need(t, "bash")
			databases[title](t, func(t *testing.T, db dbtest.Database) {
				t.Parallel()
				q := &quickStart{session: &session{t: t, dir: t.TempDir(), dsn: db.DSN}, objects: map[string]manifest{}}
				defer q.stop()
				if title == "An existing service" {
					q.run("go mod init example.com/shop") // the service is there
				}
				for _, b := range (document{"docs/quickstart.md", section}).blocks() {
					q.follow(b)
				}
			})
		})
	}
}

// quickStart is a session of a reader, with what stands in the place of Docker and Kubernetes.
type quickStart struct {
	*session
	program *servertest.Process // started by the last command, and goes on
	workers int                 // that have completed a task
	skipped string              // the interpreter of the last command, when it is missing
	said    string              // by the commands so far

	image   map[string]string // what the Dockerfile sets
	secret  map[string]string
	objects map[string]manifest // of the cluster, such as job/delaytask-migrate
}

// follow does what a block says.
func (q *quickStart) follow(b block) {
	q.t.Helper()
	switch b.language {
	case "sh":
		for _, command := range b.commands() {
			q.run(command)
		}
	case "":
		q.shows(b.text)
	case "sql":
		servertest.Exec(q.t, q.dsn, b.text)
	default:
		names := codeSpan.FindAllString(b.before, -1)
		if len(names) == 0 {
			q.t.Fatalf("%s: the sentence before names no file", b.before)
		}
		q.write(strings.Trim(names[0], "`"), b.text)
	}
}

func (q *quickStart) write(name, text string) {
	servertest.OK(q.t, os.WriteFile(filepath.Join(q.dir, name), []byte(text), 0o644))
}

func (q *quickStart) run(command string) {
	q.t.Helper()
	bare := assignment.ReplaceAllString(command, "")
	namesWhatIsThere(q.t, bare)
	program, rest, _ := strings.Cut(bare, " ")
	switch program {
	case "docker":
		q.docker(q.words(rest))
	case "kubectl":
		q.kubectl(q.words(rest))
	case "php", "python3", "node":
		if q.skipped = ""; !q.has(program) {
			q.skipped = program
			return
		}
		q.start(command)
	case "go":
		switch bare {
		case "go run .":
			q.session.run("go build -o program .") // so that a signal reaches it
			q.start(strings.Replace(command, bare, "./program", 1))
		case "go install github.com/delaytask/delaytask/cmd/delaytask@latest": // it is there
		default:
			q.said += q.session.run(command)
		}
		if strings.HasPrefix(bare, "go mod init") {
			q.release()
		}
	default:
		q.said += q.session.run(command)
	}
}

// release lets a proxy list a release, which is the code of this repository.
func (q *quickStart) release() {
	q.t.Helper()
	here, err := filepath.Abs(root)
	servertest.OK(q.t, err)
	proxy := filepath.Join(q.t.TempDir(), "github.com/delaytask/delaytask/@v")
	servertest.OK(q.t, os.MkdirAll(proxy, 0o755))
	for name, text := range map[string]string{"list": "v0.1.0\n", "v0.1.0.info": `{"Version":"v0.1.0"}`,
		"v0.1.0.mod": read(q.t, filepath.Join(root, "go.mod"))} {
		servertest.OK(q.t, os.WriteFile(filepath.Join(proxy, name), []byte(text), 0o644))
	}
	q.session.run("export GOPROXY='file://" + strings.TrimSuffix(proxy, "/github.com/delaytask/delaytask/@v") +
		"',$(go env GOPROXY)")
	q.session.run("go mod edit -replace github.com/delaytask/delaytask='" + here + "'")
}

// has reports whether the interpreter is here. It must be where a variable says so, such as DELAYTASK_REQUIRE_PHP.
func (q *quickStart) has(program string) bool {
	_, err := exec.LookPath(program)
	if required := "DELAYTASK_REQUIRE_" + strings.ToUpper(program); err != nil && os.Getenv(required) != "" {
		q.t.Fatalf("%s is set, and %v", required, err)
	} else if err != nil {
		q.t.Logf("left out: %v", err)
	}
	return err == nil
}

// start starts a program that goes on, as in a terminal of its own.
func (q *quickStart) start(command string) {
	url := ""
	if q.service != nil {
		url = "DELAYTASK_URL=http://" + q.address + " "
	}
	q.program = servertest.Launch(q.t, q.bash("exec env "+url+q.filled(command)))
}

// words are the arguments of a command as the shell makes them.
func (q *quickStart) words(command string) []string {
	out, err := q.bash(`printf '%s\0' ` + q.filled(command)).Output()
	servertest.OK(q.t, err)
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

var shownNumber = regexp.MustCompile(`\d+`)

// shows requires the lines of the text, with other numbers. Then it ends the program that has said them.
func (q *quickStart) shows(text string) {
	q.t.Helper()
	if q.skipped != "" {
		return
	}
	for line := range strings.Lines(text) {
		pattern := shownNumber.ReplaceAllString(regexp.QuoteMeta(strings.TrimSpace(line)), `\d+`)
		want := regexp.MustCompile("(?m)^" + strings.ReplaceAll(pattern, "…", ".*") + "$")
		if q.program == nil && !want.MatchString(q.said) {
			q.t.Errorf("the page shows %s, the commands said:\n%s", line, q.said)
		} else if q.program != nil {
			servertest.Eventually(q.t, "the program says "+line, func() bool {
				return want.MatchString(q.program.Out.String() + q.program.Err.String())
			})
		}
	}
	if q.program == nil {
		return
	}
	if q.service != nil { // the work is reported
		q.workers++
		asks := servertest.Client{TB: q.t, URL: "http://" + q.address}
		servertest.Eventually(q.t, "the worker completes its task", func() bool {
			return strings.Count(asks.Call("GET", "/v1/tasks?status=completed", "").Text, `"id":`) == q.workers
		})
	}
	q.program.Signal(os.Interrupt)
	if code := q.program.End(); q.service == nil && code != 0 {
		q.t.Errorf("the program ends with %d", code)
	}
	q.program = nil
}

// container runs the command delaytask with these settings and no others, and the arguments. With serve it goes on.
func (q *quickStart) container(settings map[string]string, args []string) {
	q.t.Helper()
	words := []string{"-i"}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		words = append(words, name+"="+settings[name])
	}
	words = append(append(words, servertest.Build(q.t, "./cmd/delaytask")), args...)
	for i := range words {
		words[i] = "'" + strings.ReplaceAll(words[i], "'", `'\''`) + "'"
	}
	command := strings.Join(words, " ")
	if args[0] == "serve" {
		q.serve(command)
		return
	}
	out, err := q.bash("env " + command).CombinedOutput()
	if err != nil {
		q.t.Errorf("delaytask %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	q.said += string(out)
}

var imageSets = regexp.MustCompile(`(?m)^ENV (.*)$`)

// docker builds the image of a Dockerfile, and runs it. Other images are the database's.
func (q *quickStart) docker(args []string) {
	flags := pflag.NewFlagSet("docker "+args[0], pflag.ContinueOnError)
	flags.SetInterspersed(false)
	file, tag := flags.StringP("file", "f", "", ""), flags.StringP("tag", "t", "", "")
	env, published := flags.StringArrayP("env", "e", nil, ""), flags.StringP("publish", "p", "", "")
	for _, name := range []string{"name", "network", "cap-drop", "security-opt"} {
		flags.String(name, "", "")
	}
	for _, name := range []string{"rm", "read-only"} {
		flags.Bool(name, false, "")
	}
	detached := flags.BoolP("detach", "d", false, "")
	servertest.OK(q.t, flags.Parse(args[1:]))
	if args[0] == "build" && *tag == "delaytask" {
		q.image = map[string]string{}
		for pair := range strings.FieldsSeq(imageSets.FindStringSubmatch(read(q.t, filepath.Join(root, *file)))[1]) {
			name, value, _ := strings.Cut(pair, "=")
			q.image[name] = strings.ReplaceAll(value, ":/data/", ":"+filepath.Join(q.dir, "data")+"/") // not there
		}
	}
	if args[0] != "run" || flags.Arg(0) != "delaytask" {
		return
	}
	settings := maps.Clone(q.image)
	for _, e := range *env {
		name, value, given := strings.Cut(e, "=")
		if !given {
			value = q.words(`"$` + name + `"`)[0]
		}
		settings[name] = value
	}
	command := append(flags.Args()[1:], "serve")[:max(1, flags.NArg()-1)]
	if port := settings["DELAYTASK_SERVER_LISTEN"]; *detached && !strings.HasSuffix(*published, port) {
		q.t.Errorf("the page publishes %s, and the image listens at %s", *published, port)
	}
	settings["DELAYTASK_SERVER_LISTEN"] = ":0"
	q.container(settings, command)
}

// manifest is a document of deploy/kubernetes of any kind.
type manifest struct {
	Kind      string
	Metadata  struct{ Name string }
	Resources []string // of a Kustomization
	Spec      struct {
		Ports    []struct{ Port int }
		Template struct {
			Spec struct{ Containers []pod.Container }
		}
	}
}

// kubectl does to the objects what a cluster does.
func (q *quickStart) kubectl(args []string) {
	flags := pflag.NewFlagSet("kubectl "+args[0], pflag.ContinueOnError)
	literals := flags.StringArray("from-literal", nil, "")
	file, folder := flags.StringP("filename", "f", "", ""), flags.StringP("kustomize", "k", "", "")
	flags.String("for", "", "")
	flags.Duration("timeout", 0, "")
	absent := flags.Bool("ignore-not-found", false, "")
	servertest.OK(q.t, flags.Parse(args[1:]))
	words := flags.Args()
	switch {
	case args[0] == "create" && slices.Equal(words, []string{"secret", "generic", "delaytask"}):
		q.secret = map[string]string{}
		for _, literal := range *literals {
			name, value, _ := strings.Cut(literal, "=")
			q.secret[name] = value
		}
	case args[0] == "delete" && *absent:
		delete(q.objects, words[0]+"/"+words[1])
	case args[0] == "apply" && *file != "":
		q.apply(*file)
	case args[0] == "apply":
		for _, resource := range q.documents(filepath.Join(*folder, "kustomization.yaml"))[0].Resources {
			q.apply(filepath.Join(*folder, resource))
		}
		q.deploy()
	default: // wait, rollout status, port-forward, exec
		i := slices.IndexFunc(words, func(word string) bool { return strings.Contains(word, "/") })
		object, there := q.objects[words[i]]
		if !there {
			q.t.Fatalf("kubectl %s: there is no %s", strings.Join(args, " "), words[i])
		}
		if args[0] == "port-forward" && fmt.Sprint(object.Spec.Ports[0].Port) != words[i+1] {
			q.t.Errorf("the service has the ports %v, want %s", object.Spec.Ports, words[i+1])
		}
		if args[0] == "exec" && words[i+1] == "/delaytask" {
			q.container(q.settings(object), words[i+2:])
		}
	}
}

func (q *quickStart) documents(path string) (all []manifest) {
	for text := range strings.SplitSeq(read(q.t, filepath.Join(root, path)), "\n---\n") {
		all = append(all, pod.Decode[manifest](q.t, text))
	}
	return all
}

// apply makes the objects of a file. A job runs at once.
func (q *quickStart) apply(path string) {
	for _, m := range q.documents(path) {
		q.objects[strings.ToLower(m.Kind)+"/"+m.Metadata.Name] = m
		if m.Kind == "Job" {
			q.container(q.settings(m), m.Spec.Template.Spec.Containers[0].Args)
		}
	}
}

// deploy starts a pod of the deployment.
func (q *quickStart) deploy() {
	m := q.objects["deployment/delaytask"]
	q.container(q.settings(m), m.Spec.Template.Spec.Containers[0].Args)
}

// settings are the variables of a pod, with a port of its own.
func (q *quickStart) settings(m manifest) map[string]string {
	container, all := m.Spec.Template.Spec.Containers[0], map[string]string{}
	for _, from := range container.EnvFrom {
		if from.SecretRef.Name == "delaytask" {
			maps.Copy(all, q.secret)
		}
	}
	container.Setenv(q.t, all)
	if all["DELAYTASK_CONFIG"] != "" {
		q.write("config.yaml", read(q.t, filepath.Join(root, "deploy/kubernetes/config.yaml")))
		all["DELAYTASK_CONFIG"] = filepath.Join(q.dir, "config.yaml")
	}
	if m.Kind == "Deployment" {
		all["DELAYTASK_SERVER_LISTEN"] = ":0"
	}
	return all
}
