//go:build !race && linux

// Package door starts what a new user starts: the program with the settings of the image, of docker-compose.yml and of
// the manifests for Kubernetes, on empty databases. The settings are read from the files. The program has an empty root
// folder, runs as the files' user, and can write where the files mount something.
package door

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/pod"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/wire"
	_ "github.com/delaytask/delaytask/sqlite"
)

const (
	root      = "../.."
	tokenVar  = "DELAYTASK_BOOTSTRAP_TOKEN"
	dsnVar    = "DELAYTASK_DSN"
	listenVar = "DELAYTASK_SERVER_LISTEN"
)

func TestMain(m *testing.M) {
	_ = os.Setenv("CGO_ENABLED", "0") // as the image has it: no library is there
	os.Exit(servertest.Built{Tests: dbtest.WithServers(m)}.Run())
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	servertest.OK(t, err)
	return string(text)
}

// container is what runs the program.
type container struct {
	root       string
	uid, gid   int
	env        map[string]string
	dir        string
	entrypoint []string
	args       []string
	health     []string
}

var copied = regexp.MustCompile(`^COPY --from=build (?:--chown=(\d+):(\d+) )?(\S+) (\S+)$`)

// image makes a container of what deploy/Dockerfile says after its last FROM. volumes says whether what it declares as
// a volume is one, where the program may write.
func image(t *testing.T, volumes bool) *container {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a program another root folder and another user")
	}
	c := &container{root: t.TempDir(), env: map[string]string{}}
	servertest.OK(t, os.Chmod(c.root, 0o755))
	file := read(t, "deploy/Dockerfile")
	last := file[strings.LastIndex(file, "\nFROM scratch\n"):]
	for line := range strings.Lines(last) {
		line = strings.TrimSpace(line)
		word, rest, _ := strings.Cut(line, " ")
		var err error
		switch word {
		case "COPY":
			c.copy(t, copied.FindStringSubmatch(line), volumes)
		case "USER":
			user, group, _ := strings.Cut(rest, ":")
			c.uid, err = strconv.Atoi(user)
			servertest.OK(t, err)
			c.gid, err = strconv.Atoi(group)
		case "ENV":
			for pair := range strings.FieldsSeq(rest) {
				name, value, _ := strings.Cut(pair, "=")
				c.env[name] = value
			}
		case "WORKDIR":
			c.dir = rest
		case "HEALTHCHECK":
			_, command, _ := strings.Cut(rest, " CMD ")
			err = json.Unmarshal([]byte(command), &c.health)
		case "ENTRYPOINT":
			err = json.Unmarshal([]byte(rest), &c.entrypoint)
		case "CMD":
			err = json.Unmarshal([]byte(rest), &c.args)
		}
		servertest.OK(t, err)
	}
	return c
}

// copy puts the program where the image has it, and makes its folders.
func (c *container) copy(t *testing.T, line []string, owned bool) {
	t.Helper()
	if line == nil {
		t.Fatal("the Dockerfile copies in another form")
	}
	to := filepath.Join(c.root, line[4])
	switch line[3] {
	case "/out/delaytask":
		install(t, "./cmd/delaytask", to)
	case "/out/data":
		servertest.OK(t, os.Mkdir(to, 0o755))
		if uid, err := strconv.Atoi(line[1]); err == nil && owned {
			gid, err := strconv.Atoi(line[2])
			servertest.OK(t, err)
			servertest.OK(t, os.Chown(to, uid, gid))
		}
	}
}

// install builds a program and puts it at a path. A process that another test starts meanwhile would inherit the open
// file, and to run the program would fail with "text file busy": https://github.com/golang/go/issues/22315.
func install(t *testing.T, pkg, path string) {
	t.Helper()
	program, err := os.ReadFile(servertest.Build(t, pkg))
	servertest.OK(t, err)
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	servertest.OK(t, os.WriteFile(path, program, 0o755))
}

// mount puts files into a folder that cannot be written to.
func (c *container) mount(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	folder = filepath.Join(c.root, folder)
	servertest.OK(t, os.MkdirAll(folder, 0o755))
	for name, content := range files {
		servertest.OK(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644))
	}
}

func (c *container) start(t *testing.T, command ...string) *servertest.Process {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = c.dir
	for _, name := range slices.Sorted(maps.Keys(c.env)) {
		cmd.Env = append(cmd.Env, name+"="+c.env[name])
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: c.root,
		Credential: &syscall.Credential{Uid: uint32(c.uid), Gid: uint32(c.gid)}}
	return servertest.Launch(t, cmd)
}

func (c *container) run(t *testing.T) *servertest.Process {
	t.Helper()
	return c.start(t, append(c.entrypoint, c.args...)...)
}

// server is a container that serves.
type server struct {
	servertest.Client
	*servertest.Process
}

// serve starts the program, at a port of its own.
func (c *container) serve(t *testing.T) *server {
	t.Helper()
	c.env[listenVar] = ":0"
	p := c.run(t)
	s := &server{servertest.Client{TB: t}, p}
	s.URL = s.Says(`^delaytask serve.* at (http[^\s,]+)`)
	return s
}

// healthy asks as Docker does.
func (c *container) healthy(t *testing.T, s *server) {
	t.Helper()
	c.env[listenVar] = s.URL[strings.LastIndex(s.URL, ":"):]
	c.start(t, c.health...).EndsWell()
}

// passes saves a task at one server, and pops and finishes it at another.
func passes(t *testing.T, at, to *server, header ...string) {
	t.Helper()
	saved := servertest.Ask[wire.Saved](&at.Client, 201, "POST", "/v1/tasks", `{"tag":"door"}`, header...)
	reply := servertest.Ask[wire.PopReply](&to.Client, 200, "POST", "/v1/tags/door/pop?wait=30s", "", header...)
	if len(reply.Tasks) != 1 || reply.Tasks[0].ID != saved.ID {
		t.Fatalf("saved %s, popped %+v", saved.ID, reply.Tasks)
	}
	to.Want(204, "", "POST", "/v1/tasks/"+saved.ID.String()+"/finish", `{"token":"`+reply.Tasks[0].Token+`"}`,
		header...)
}

func bearer(token string) []string { return []string{"Authorization", "Bearer " + token} }

func TestTheImageServesWithATokenInItsEnvironment(t *testing.T) {
	t.Parallel()
	c := image(t, true)
	c.env[tokenVar] = rand.Text()
	s := c.serve(t)
	c.healthy(t, s)
	s.Want(401, wire.CodeUnauthorized, "GET", "/v1/stats", "")
	passes(t, s, s, bearer(c.env[tokenVar])...)
	s.Stops()
}

func TestTheComposeFileServes(t *testing.T) {
	t.Parallel()
	dbtest.MySQLs(t, func(t *testing.T, db dbtest.Database) {
		t.Parallel()
		compose := pod.Decode[struct {
			Services struct {
				Delaytask struct {
					Build       struct{ Dockerfile string }
					Environment map[string]string
					Healthcheck struct{ Test []string }
				}
			}
		}](t, read(t, "docker-compose.yml")).Services.Delaytask
		if compose.Build.Dockerfile != "deploy/Dockerfile" {
			t.Fatalf("it builds %s", compose.Build.Dockerfile)
		}
		c := image(t, true)
		maps.Copy(c.env, compose.Environment)
		c.env[dsnVar], c.health = db.DSN, compose.Healthcheck.Test[1:]
		s := c.serve(t)
		c.healthy(t, s)
		passes(t, s, s)
		s.Stops()
	})
}

// spec is what the test needs of a pod.
type spec struct {
	SecurityContext               struct{ RunAsUser, RunAsGroup int }
	TerminationGracePeriodSeconds int
	Containers                    []struct {
		pod.Container

		VolumeMounts                                []struct{ MountPath string }
		StartupProbe, LivenessProbe, ReadinessProbe struct{ HTTPGet struct{ Path string } }
		Lifecycle                                   struct {
			PreStop struct{ Sleep struct{ Seconds int } }
		}
	}
}

// manifest is a document of any kind.
type manifest struct {
	Kind       string
	StringData map[string]string // of a Secret
	Spec       struct {
		Replicas int
		Template struct{ Spec spec }
	}
}

// manifests returns the documents by their kind.
func manifests(t *testing.T, files ...string) map[string]manifest {
	t.Helper()
	all := map[string]manifest{}
	for _, file := range files {
		for document := range strings.SplitSeq(read(t, "deploy/kubernetes/"+file), "\n---\n") {
			m := pod.Decode[manifest](t, document)
			all[m.Kind] = m
		}
	}
	return all
}

// in makes a container of a pod, with the secret in its environment.
func (p spec) in(t *testing.T, secret, config map[string]string) *container {
	t.Helper()
	c := image(t, false)
	c.uid, c.gid, c.args = p.SecurityContext.RunAsUser, p.SecurityContext.RunAsGroup, p.Containers[0].Args
	maps.Copy(c.env, secret)
	p.Containers[0].Setenv(t, c.env)
	for _, v := range p.Containers[0].VolumeMounts {
		c.mount(t, v.MountPath, config)
	}
	return c
}

// TestTheManifestsServe follows the page on Kubernetes: a secret with values of one's own, the migration, the pods.
func TestTheManifestsServe(t *testing.T) {
	t.Parallel()
	all := manifests(t, "secret.example.yaml", "migrate.yaml", "deployment.yaml")
	example := all["Secret"].StringData
	config := map[string]string{"config.yaml": read(t, "deploy/kubernetes/config.yaml")}
	migrate, serve := all["Job"].Spec.Template.Spec, all["Deployment"].Spec.Template.Spec
	if example[tokenVar] == "" {
		t.Fatalf("the secret has no %s", tokenVar)
	}
	mine := func(dsn string) map[string]string {
		secret := map[string]string{}
		for name := range example {
			secret[name] = rand.Text()
		}
		secret[dsnVar] = dsn
		return secret
	}
	t.Run("example", func(t *testing.T) {
		refused := func(p spec, name string, secret map[string]string) {
			t.Helper()
			run := p.in(t, secret, config).run(t)
			if code, said := run.End(), run.Err.String(); code != 2 || !strings.Contains(said, name) ||
				!strings.Contains(said, "openssl rand -base64 32") {
				t.Errorf("%s is the example's: exit code %d, and it says %s", name, code, said)
			}
		}
		refused(migrate, dsnVar, example)
		for name, value := range example {
			secret := mine("sqlite:/data/none.db")
			secret[name] = value
			refused(serve, name, secret)
		}
	})
	dbtest.MySQLs(t, func(t *testing.T, db dbtest.Database) {
		t.Parallel()
		secret := mine(db.DSN)
		migrate.in(t, secret, nil).run(t).EndsWell()
		c := serve.in(t, secret, config)
		var pods []*server
		for range all["Deployment"].Spec.Replicas {
			pods = append(pods, c.serve(t))
		}
		last, settings := pods[len(pods)-1], serve.Containers[0]
		for _, s := range pods {
			for _, path := range []string{settings.StartupProbe.HTTPGet.Path, settings.LivenessProbe.HTTPGet.Path,
				settings.ReadinessProbe.HTTPGet.Path} {
				s.Answers(s.URL + path)
			}
		}
		passes(t, pods[0], last, bearer(secret[tokenVar])...)
		limit := fmt.Sprintf("go_gc_gomemlimit_bytes %g\n", float64(serve.Containers[0].Mebibytes(t)*1000<<10))
		told := last.Want(200, "", "GET", "/metrics", "", bearer(secret[tokenVar])...)
		if !strings.Contains(told.Text, limit) {
			t.Errorf("the metrics have no %s", limit)
		}

		p := c.start(t, append(c.entrypoint, "config", "print", "--json")...)
		p.EndsWell()
		if said := p.Out.String() + p.Err.String(); strings.Contains(said, secret[tokenVar]) {
			t.Errorf("it prints the token: %s", said)
		}
		used := pod.Decode[struct {
			StopGrace int `json:"stop_grace_ms"`
		}](t, p.Out.String())
		const requests = 15 * time.Second // that are in flight
		given := time.Second *
			time.Duration(serve.TerminationGracePeriodSeconds-settings.Lifecycle.PreStop.Sleep.Seconds)
		if want := requests + time.Duration(used.StopGrace)*time.Millisecond; given < want {
			t.Errorf("pods are killed %v after SIGTERM, want %v", given, want)
		}
		for _, s := range pods {
			s.Stops()
		}
	})
}
