//go:build !race && linux

package door

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/scheduler"
)

const module = "github.com/delaytask/delaytask"

// published returns the folder with what a release publishes. The tests that need it take minutes.
func published(t *testing.T) (folder string) {
	t.Helper()
	folder = os.Getenv("DELAYTASK_TEST_RELEASE")
	if folder == "" {
		t.Skip("DELAYTASK_TEST_RELEASE names no folder; make release-test does")
	}
	return folder
}

// says runs a command and returns what it prints.
func says(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	cmd.Stderr = new(strings.Builder)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", cmd, err, out, cmd.Stderr)
	}
	return strings.TrimSpace(string(out))
}

// The folder is a module proxy that has the working tree as a version of the module. What it needs of others comes from
// this machine's module cache.
func TestGoInstallsTheCommandFromAProxy(t *testing.T) {
	t.Parallel()
	published(t)
	git := func(args ...string) string {
		t.Helper()
		return says(t, exec.Command("git", append([]string{"-C", root}, args...)...))
	}
	const version = "v" + scheduler.Version
	proxy, bin := t.TempDir(), t.TempDir()
	versions := filepath.Join(proxy, module, "@v")
	servertest.OK(t, os.MkdirAll(versions, 0o755))
	for name, text := range map[string]string{"list": version + "\n",
		version + ".info": `{"Version":"` + version + `"}`, version + ".mod": read(t, "go.mod")} {
		servertest.OK(t, os.WriteFile(filepath.Join(versions, name), []byte(text), 0o644))
	}
	tree := git("stash", "create") // "" without changes
	if tree == "" {
		tree = "HEAD"
	}
	archive := []string{"archive", "--prefix=" + module + "@" + version + "/",
		"--output=" + filepath.Join(versions, version+".zip"), tree, "--", "."}
	for _, other := range strings.Fields(git("ls-files", "*/go.mod")) { // a module of its own
		archive = append(archive, ":!"+filepath.Dir(other))
	}
	git(archive...)

	cache := says(t, exec.Command("go", "env", "GOMODCACHE"))
	install := exec.Command("go", "install", module+"/cmd/delaytask@latest")
	install.Dir = bin // in no module
	install.Env = append(os.Environ(), "GOPROXY=file://"+proxy+",file://"+cache+"/cache/download", "GOSUMDB=off",
		"GOMODCACHE="+t.TempDir(), "GOFLAGS=-modcacherw", "GOBIN="+bin)
	says(t, install)
	if said := says(t, exec.Command(filepath.Join(bin, "delaytask"), "version")); !strings.HasPrefix(said,
		"delaytask "+scheduler.Version+" (") {
		t.Errorf("%s says %s", version, said)
	}
}

// debian is a minimal Debian in a folder.
type debian struct {
	*testing.T
	root string
}

func (d debian) at(path string) string { return filepath.Join(d.root, path) }

func (d debian) command(args ...string) *exec.Cmd {
	cmd := exec.Command("chroot", append([]string{d.root}, args...)...)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "SYSTEMD_OFFLINE=1",
		"DEBIAN_FRONTEND=noninteractive"}
	return cmd
}

func (d debian) as(user string, args ...string) *exec.Cmd {
	cmd := d.command(args...)
	cmd.Args = slices.Insert(cmd.Args, 1, "--userspec="+user+":"+user)
	return cmd
}

func (d debian) run(args ...string) string {
	d.Helper()
	return says(d.T, d.command(args...))
}

func (d debian) write(path, text string, mode fs.FileMode) {
	d.Helper()
	servertest.OK(d, os.WriteFile(d.at(path), []byte(text), mode))
}

func (d debian) has(path string) bool {
	_, err := os.Lstat(d.at(path))
	return err == nil
}

// volatile is what Debian's own tools keep.
var volatile = regexp.MustCompile(
	`^/(dev|proc|sys|run|tmp|var/(log|cache|lib/dpkg|lib/apt))(/|$)|^/etc/(\.pwd\.lock|\w+-)$`)

// files lists what there is, with owner and size.
func (d debian) files() map[string]string {
	d.Helper()
	all := map[string]string{}
	servertest.OK(d, filepath.WalkDir(d.root, func(path string, entry fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, d.root)
		if err != nil || volatile.MatchString(name) {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			all[name] = fmt.Sprint(info.Mode())
			if !entry.IsDir() {
				all[name] += fmt.Sprint(" ", info.Size())
			}
		}
		return err
	}))
	return all
}

// left lists what has changed since.
func (d debian) left(before map[string]string) (names []string) {
	after := d.files()
	for name, file := range after {
		if before[name] != file {
			names = append(names, name)
		}
	}
	for name := range before {
		if after[name] == "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// install installs a package as people do, and keeps their settings.
func (d debian) install(deb string) {
	d.Helper()
	content, err := os.ReadFile(deb)
	servertest.OK(d, err)
	d.write("/tmp/package.deb", string(content), 0o644)
	d.run("dpkg", "--force-confold", "--install", "/tmp/package.deb")
}

// next returns the package as a later version has it, with other settings.
func (d debian) next(deb, version string) (later string) {
	d.Helper()
	dir := filepath.Join(d.TempDir(), "package")
	says(d.T, exec.Command("dpkg-deb", "--raw-extract", deb, dir))
	says(d.T, exec.Command("sed", "-i", "s/^Version: .*/Version: "+version+"/", dir+"/DEBIAN/control"))
	says(d.T, exec.Command("sed", "-i", "$a # of a later version", dir+"/etc/delaytask/config.yaml"))
	says(d.T, exec.Command("dpkg-deb", "--build", dir))
	return dir + ".deb"
}

// serve starts what the unit says, as its user, in its folder, with its variables.
func (d debian) serve() *server {
	d.Helper()
	unit := map[string]string{}
	for line := range strings.Lines(d.read("/usr/lib/systemd/system/delaytask.service")) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		unit[key] = value
	}
	if state := d.at("/var/lib/" + unit["StateDirectory"]); state != d.at(unit["WorkingDirectory"]) {
		d.Fatalf("the unit's folders differ: %v", unit)
	}
	cmd := d.as(unit["User"], append([]string{"env", "--chdir=" + unit["WorkingDirectory"]},
		strings.Fields(unit["ExecStart"])...)...)
	for line := range strings.Lines(d.read(strings.TrimPrefix(unit["EnvironmentFile"], "-"))) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			cmd.Env = append(cmd.Env, line)
		}
	}
	p := servertest.Launch(d, cmd)
	s := &server{servertest.Client{TB: d}, p}
	s.URL = s.Says(`^delaytask serve.* at (http[^\s,]+)`)
	return s
}

func (d debian) read(path string) string {
	d.Helper()
	text, err := os.ReadFile(d.at(path))
	servertest.OK(d, err)
	return string(text)
}

// systemctl stands before systemd's own, and notes what scripts ask of a systemd that runs.
const systemctl = `#!/bin/sh
echo "$*" >>/asked
case "$*" in *disable*) exec /usr/bin/systemctl "$@" ;; esac
`

// asked returns what scripts have asked of systemd since the last call.
func (d debian) asked() string {
	d.Helper()
	text := d.read("/asked")
	servertest.OK(d, os.Remove(d.at("/asked")))
	return text
}

func TestTheDebianPackageComesAndGoes(t *testing.T) {
	t.Parallel()
	debs, err := filepath.Glob(filepath.Join(published(t), "*_linux_"+runtime.GOARCH+".deb"))
	if err != nil || len(debs) != 1 {
		t.Fatalf("there is not one package for this machine, but %v (%v)", debs, err)
	}
	d := debian{t, filepath.Join(t.TempDir(), "debian")}
	says(t, exec.Command("debootstrap", "--variant=minbase", "--include=systemd", "bookworm", d.root))
	before := d.files()

	const (
		config, environment = "/etc/delaytask/config.yaml", "/etc/delaytask/environment"
		program, data       = "/usr/bin/delaytask", "/var/lib/delaytask"
		enabled             = "/etc/systemd/system/multi-user.target.wants/delaytask.service"
	)
	d.install(debs[0])
	if file := d.files()[environment]; !strings.HasPrefix(file, "-rw------- ") {
		t.Errorf("%s is %s", environment, file)
	}
	if d.has(enabled) {
		t.Error("the installation enables the service")
	}
	d.run("systemd-analyze", "verify", "delaytask.service")
	shell := func(args ...string) string {
		t.Helper()
		return says(t, d.as("delaytask", append([]string{"delaytask", "--config", config}, args...)...))
	}
	shell("migrate", "up")
	token := shell("token", "create", "admin", "--tags", "*", "--verbs", "all")
	mine := d.read(config) + "concurrency: 7\n"
	d.write(config, mine, 0o644)
	const listen = "DELAYTASK_SERVER_LISTEN=127.0.0.1:0\n"
	d.write(environment, listen, 0o600)
	s := d.serve()
	s.Want(401, wire.CodeUnauthorized, "GET", "/v1/stats", "")
	passes(t, s, s, bearer(token)...)
	saved := servertest.Ask[wire.Saved](&s.Client, 201, "POST", "/v1/tasks", `{"tag":"later","delay":"1h"}`,
		bearer(token)...)
	s.Stops()
	d.run("systemctl", "enable", "delaytask.service")

	const later = "99.0.0"
	d.write("/usr/local/sbin/systemctl", systemctl, 0o755)
	servertest.OK(t, os.MkdirAll(d.at("/run/systemd/system"), 0o755))
	d.install(d.next(debs[0], later))
	if version := d.run("dpkg-query", "--show", "--showformat=${Version}", "delaytask"); version != later {
		t.Errorf("the upgrade installs %s", version)
	}
	if asked := d.asked(); asked != "daemon-reload\ntry-restart delaytask.service\n" || !d.has(enabled) {
		t.Errorf("the upgrade asks systemd for %q", asked)
	}
	if d.read(config) != mine || d.read(environment) != listen {
		t.Error("the upgrade changes the settings")
	}
	s = d.serve()
	servertest.Ask[wire.Task](&s.Client, 200, "GET", "/v1/tasks/"+saved.ID.String(), "", bearer(token)...)
	s.Stops()

	d.run("dpkg", "--remove", "delaytask")
	stops := "stop delaytask.service\n--no-reload disable delaytask.service\ndaemon-reload\n"
	if asked := d.asked(); asked != stops || d.has(enabled) {
		t.Errorf("the removal asks systemd for %q", asked)
	}
	if d.has(program) || d.read(config) != mine {
		t.Error("the removal leaves the program, or takes the settings")
	}
	d.run("dpkg", "--purge", "delaytask")
	servertest.OK(t, os.Remove(d.at("/usr/local/sbin/systemctl")))
	want := []string{"/etc/group", "/etc/gshadow", "/etc/passwd", "/etc/shadow", data, data + "/delaytask.db"}
	if left := d.left(before); !slices.Equal(left, want) {
		t.Errorf("the purge leaves %v, want data and their user: %v", left, want)
	}

	servertest.OK(t, os.RemoveAll(d.at(data)))
	d.install(debs[0])
	d.run("dpkg", "--purge", "delaytask")
	if left := d.left(before); len(left) > 0 {
		t.Errorf("without data the purge leaves %v", left)
	}
}
