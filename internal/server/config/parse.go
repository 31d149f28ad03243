package config

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/cluster/wake"
	"github.com/delaytask/delaytask/internal/hostname"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/wire"
)

const (
	day  = 24 * time.Hour
	year = 365 * day
)

func isEmpty(value any) bool {
	m, isMap := value.(map[string]any)
	return value == nil || isMap && len(m) == 0
}

// The parsers take a decoded YAML value, or the text of a variable or flag. Their errors say what is valid.

func text(shortest int) func(any) (string, error) {
	return func(value any) (string, error) {
		s, ok := value.(string)
		if !ok {
			return "", errors.New("want text; put it in quotes") // not shown: a DSN holds a password
		}
		if len(s) < shortest {
			return "", errors.New("must not be empty")
		}
		return s, nil
	}
}

// list takes a sequence, or a text with commas: variables and flags have no sequences.
func list(value any) ([]string, error) {
	var items []string
	switch v := value.(type) {
	case string:
		items = strings.Split(v, ",")
	case []any:
		for _, item := range v {
			s, ok := item.(string)
			if !ok {
				return nil, errors.New("want a list of texts; put them in quotes")
			}
			items = append(items, s)
		}
	default:
		return nil, errors.New("want a list of texts")
	}
	for i := range items {
		items[i] = strings.TrimSpace(items[i])
	}
	if items = slices.DeleteFunc(items, func(s string) bool { return s == "" }); len(items) == 0 {
		return nil, nil
	}
	return items, nil
}

func tagPatterns(value any) ([]string, error) {
	patterns, err := list(value)
	if err != nil || patterns == nil {
		return nil, err
	}
	return access.ParseTags(patterns)
}

// networks takes addresses and networks, and returns all of them as networks.
func networks(value any) ([]string, error) {
	items, err := list(value)
	if err != nil {
		return nil, err
	}
	for i, item := range items {
		network, err := netip.ParsePrefix(item)
		if err != nil {
			var address netip.Addr
			if address, err = netip.ParseAddr(item); err == nil {
				network, err = address.WithZone("").Unmap().Prefix(address.Unmap().BitLen())
			}
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("want addresses and networks such as 10.1.2.3 or 10.1.0.0/16, got %.80q", item)
		case network.Bits() == 0:
			return nil, fmt.Errorf("%s is every address, and each caller could claim another one; name the proxies",
				item)
		}
		items[i] = network.Masked().String()
	}
	return items, nil
}

// publicURL is where browsers reach the dashboard: https, a name, and maybe a port.
func publicURL(value any) (string, error) {
	text, ok := value.(string)
	if ok && text == "" {
		return "", nil
	}
	text = strings.TrimSuffix(text, "/")
	u, err := url.Parse(text)
	if !ok || err != nil || u.Scheme != "https" || len(text) != len("https://"+u.Host) ||
		!hostname.Valid(u.Hostname()) || hostname.Port(u) == 0 {
		return "", errors.New("want the https address by which browsers reach the dashboard, without a path, such as " +
			"https://tasks.example.com") // not shown: it may hold a password
	}
	return text, nil
}

func secretNames(value any) ([]string, error) {
	names, err := list(value)
	if err == nil {
		_, err = redact.New(names...)
	}
	return names, err
}

func hostPort(value any) (string, error) {
	s, ok := value.(string)
	if _, _, err := net.SplitHostPort(s); !ok || err != nil {
		return "", fmt.Errorf("want an address with a port such as 127.0.0.1:8080 or :8080, got %q", fmt.Sprint(value))
	}
	return s, nil
}

// wakeAddress is where wake-ups are received, or that they are not.
func wakeAddress(value any) (string, error) {
	s, ok := value.(string)
	if !ok {
		return "", fmt.Errorf("want an address with a port such as :7342, or off; got %q", fmt.Sprint(value))
	}
	return s, wake.CheckListen(s)
}

func choice(allowed ...string) func(any) (string, error) {
	return func(value any) (string, error) {
		s, ok := value.(string)
		if !ok || !slices.Contains(allowed, s) {
			return "", fmt.Errorf("want one of %s, got %q", strings.Join(allowed, ", "), fmt.Sprint(value))
		}
		return s, nil
	}
}

func boolean(value any) (bool, error) {
	switch fmt.Sprint(value) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	default:
		return false, fmt.Errorf("want true or false, got %q", fmt.Sprint(value))
	}
}

func integer(low, high int) func(any) (int, error) {
	return func(value any) (int, error) {
		n, err := strconv.Atoi(fmt.Sprint(value))
		if err != nil || n < low || n > high {
			return 0, fmt.Errorf("want a whole number from %d to %d, got %q", low, high, fmt.Sprint(value))
		}
		return n, nil
	}
}

func number(low, high float64) func(any) (float64, error) {
	return func(value any) (float64, error) {
		f, err := strconv.ParseFloat(fmt.Sprint(value), 64)
		if err != nil || math.IsNaN(f) || f < low || f > high {
			return 0, fmt.Errorf("want a number from %v to %v, got %q", low, high, fmt.Sprint(value))
		}
		return f, nil
	}
}

func duration(low, high time.Duration) func(any) (time.Duration, error) {
	return func(value any) (time.Duration, error) {
		d, err := wire.ParseDuration(fmt.Sprint(value))
		if err != nil {
			return 0, err
		}
		if d < low || d > high {
			return 0, fmt.Errorf("want a duration from %s to %s, got %s", wire.FormatDuration(low),
				wire.FormatDuration(high), wire.FormatDuration(d))
		}
		return d, nil
	}
}

// lines takes a text, or a sequence of texts. Commas do not part a text: a cron line may hold some.
func lines(value any) (texts []string, err error) {
	items, isList := value.([]any)
	if !isList {
		items = []any{value}
	}
	for _, item := range items {
		switch v := item.(type) {
		case string:
			texts = append(texts, v)
		case time.Time: // YAML reads a text that looks like one
			texts = append(texts, strings.TrimSuffix(v.UTC().Format(time.RFC3339), "T00:00:00Z"))
		default:
			return nil, errors.New("want a text or a list of texts; put them in quotes")
		}
	}
	return texts, nil
}

// moment takes a time of RFC 3339, "" for none.
func moment(value any) (time.Time, error) {
	switch v := value.(type) {
	case time.Time: // YAML reads a text that looks like one
		return v.UTC(), nil
	case string:
		var at wire.Moment
		if v == "" {
			return time.Time{}, nil
		}
		err := at.UnmarshalText([]byte(v))
		return at.Std(), err
	default:
		return time.Time{}, errors.New("want a time of RFC 3339 with its zone such as 2027-01-31T08:30:00Z")
	}
}

func owner(value any) (string, error) {
	s, ok := value.(string)
	if !ok || s != "" && !delaytask.ValidTag(s) {
		return "", fmt.Errorf("want 1 to 128 of A–Z a–z 0–9 . _ - : /, got %.140q", fmt.Sprint(value))
	}
	return s, nil
}
