package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"github.com/delaytask/delaytask/internal/operate/access"
)

// DefaultPath is the file that is read, if it is there, when no other is named.
const DefaultPath = "config.yaml"

// Source says where settings come from. Flags win over the environment, the environment over the file.
type Source struct {
	Path    string         // "" reads DefaultPath if there is one; a file that is named must exist
	Environ []string       // as os.Environ returns it; nil: none
	Flags   *pflag.FlagSet // those that AddFlags made; nil: none
}

// Load reads and checks the settings. Its error names every mistake.
func Load(src Source) (Config, error) {
	c := Default()
	err := errors.Join(c.readFile(src.Path), c.readEnviron(src.Environ), c.readFlags(src.Flags))
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return Config{}, err
	}
	c.inFile = nil
	return c, nil
}

func (c *Config) readFile(path string) error {
	named := path != ""
	if !named {
		path = DefaultPath
	}
	k := koanf.New(pathSeparator)
	err := k.Load(file.Provider(path), yaml.Parser())
	if errors.Is(err, fs.ErrNotExist) && !named {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read settings from %s: %w", path, err)
	}
	err = c.apply(k, func(path []string) string { return strings.Join(path, ".") }, path+": ")
	c.inFile = k.All()
	if info, found := os.Stat(path); found == nil {
		if c.SchedulesRevision.IsZero() {
			c.SchedulesRevision = info.ModTime().UTC().Truncate(time.Microsecond)
		}
		if runtime.GOOS != "windows" && info.Mode().Perm()&0o004 != 0 {
			c.Exposed = c.secretKeys(path + ": ")
		}
	}
	if err != nil && !named {
		return fmt.Errorf("%w\n(%s was read because it lies in this folder; if it belongs to something else, name "+
			"another file)", err, path)
	}
	return err
}

// secretKeys names the settings that hold secrets.
func (c *Config) secretKeys(origin string) (keys []string) {
	if strings.Contains(MaskDSN(c.DSN), masked) {
		keys = append(keys, origin+"dsn")
	}
	if c.Secret != "" {
		keys = append(keys, origin+"secret")
	}
	for _, tag := range slices.Sorted(maps.Keys(c.Receivers)) {
		w := c.Receivers[tag]
		if len(w.Secrets) > 0 {
			keys = append(keys, origin+"receivers."+tag+".secrets")
		}
		if maskURL(w.URL) != w.URL {
			keys = append(keys, origin+"receivers."+tag+".url")
		}
	}
	return keys
}

// check tests rules that involve several settings.
func (c *Config) check() error {
	var errs []error
	refuse := func(wrong bool, sentence string) {
		if wrong {
			errs = append(errs, errors.New(sentence))
		}
	}
	refuse(c.Backoff.Base > c.Backoff.Cap, "backoff.base must not be longer than backoff.cap")
	refuse((c.Server.TLS.Cert == "") != (c.Server.TLS.Key == ""), "server.tls.cert and server.tls.key belong together")
	refuse(c.Server.TLS.ClientCA != "" && c.Server.TLS.Cert == "", "server.tls.client_ca needs server.tls.cert")
	const own = " is still the one of the example: set one of your own, as openssl rand -base64 32 makes it"
	refuse(access.IsExample(c.Secret), "secret (DELAYTASK_SECRET)"+own)
	refuse(access.IsExample(c.DSN) && !access.IsExample(MaskDSN(c.DSN)), "the password in dsn (DELAYTASK_DSN)"+own)
	for tag, w := range c.Receivers {
		refuse(slices.ContainsFunc(w.Secrets, access.IsExample), "one of receivers."+tag+".secrets"+own)
		refuse(w.URL == "", "receivers."+tag+".url is missing")
	}
	errs = append(errs, c.checkSchedules()...)
	return errors.Join(errs...)
}
