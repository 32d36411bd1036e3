package driver

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/libredlock/libredlock/core"
)

// endpoint is a node's URL, taken apart.
type endpoint struct {
	network  string // "tcp" or "unix"
	address  string // "host:port" or a socket's path: what messages show
	username string
	password string
	db       int
}

// sameServer: two databases of one server are no independent nodes either.
func (e endpoint) sameServer(other endpoint) bool {
	return e.network == other.network && e.address == other.address
}

const urlForms = "redis://[user:password@]host[:port][/db] or unix://[user:password@]/path[?db=n]"

// parseURL takes a node's URL apart. Its errors never quote the URL, which may have a password in it.
func parseURL(node int, text string) (endpoint, *core.Error) {
	fail := func(status core.Status, message string) (endpoint, *core.Error) {
		return endpoint{}, &core.Error{Status: status, Message: "node " + strconv.Itoa(node) + ": " + message}
	}
	scheme, _, ok := strings.Cut(text, "://")
	switch {
	case !ok:
		return fail(core.Invalid, "not a URL; allowed: "+urlForms)
	case scheme == "rediss" || scheme == "redis+sentinel" || scheme == "redis+cluster":
		return fail(core.Unsupported, "this version has no "+scheme+":// yet; it has "+urlForms)
	case scheme != "redis" && scheme != "unix":
		return fail(core.Invalid, "unknown URL scheme; allowed: "+urlForms)
	}
	u, err := url.Parse(text)
	if err != nil || u.Fragment != "" || u.Opaque != "" {
		return fail(core.Invalid, "malformed URL (are special characters in the password percent-encoded?); allowed: "+urlForms)
	}
	e := endpoint{network: "tcp", username: u.User.Username()}
	e.password, _ = u.User.Password()
	db := ""
	if scheme == "unix" {
		if u.Host != "" || u.Path == "" {
			return fail(core.Invalid, "a unix URL needs an absolute path and no host; allowed: "+urlForms)
		}
		e.network, e.address = "unix", u.Path
		query := u.Query()
		db = query.Get("db")
		query.Del("db")
		if len(query) > 0 {
			return fail(core.Invalid, "unknown parameter in the URL; allowed: "+urlForms)
		}
	} else {
		if u.Hostname() == "" || u.RawQuery != "" {
			return fail(core.Invalid, "a redis URL needs a host and takes no parameters; allowed: "+urlForms)
		}
		port := u.Port()
		if port == "" {
			port = "6379"
		}
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return fail(core.Invalid, "the port is not one of 1 to 65535")
		}
		e.address = net.JoinHostPort(u.Hostname(), port)
		db = strings.TrimPrefix(u.Path, "/")
	}
	if db != "" {
		if e.db, err = strconv.Atoi(db); err != nil || e.db < 0 {
			return fail(core.Invalid, "the database is not a number from 0")
		}
	}
	return e, nil
}
