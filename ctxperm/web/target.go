package web

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
)

// Target is a URL that was parsed once. Policy, dialler and log all use it, and
// no code parses the text a second time.
type Target struct {
	resource perm.Resource
	query    string
	slash    bool // the path ends with a slash
}

// maxURL bounds the bytes of a URL.
const maxURL = 8 << 10

// ParseURL parses an absolute URL of http or https as strictly as a resource,
// and a query of printable ASCII. It refuses a user, a fragment, a zone, a host
// that is not ASCII and every unusual spelling of an address. The error is
// ErrInvalid and states what is valid.
func ParseURL(text string) (Target, error) {
	t, err := parseURL(text)
	if err != nil {
		return Target{}, fmt.Errorf("%w URL: %w", ctxperm.ErrInvalid, err)
	}
	return t, nil
}

func parseURL(text string) (Target, error) {
	if len(text) > maxURL {
		return Target{}, fmt.Errorf("it has %d bytes; at most %d are valid", len(text), maxURL)
	}
	base, query, _ := strings.Cut(text, "?")
	r, err := perm.ParseResource(base)
	if err != nil {
		return Target{}, err
	}
	if r.Kind() != perm.KindHTTP && r.Kind() != perm.KindHTTPS {
		return Target{}, errors.New("it is none of http or https")
	}
	for _, c := range []byte(query) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\"#<>\\^`{|}", c) >= 0 {
			return Target{}, fmt.Errorf("the query has the byte %%%02X plain, which must be percent-encoded", c)
		}
	}
	if _, err := url.QueryUnescape(query); err != nil {
		return Target{}, errors.New("the query has a % without two hexadecimal digits")
	}
	return Target{resource: r, query: query, slash: r.Path() != "" && strings.HasSuffix(base, "/")}, nil
}

// Resource returns the resource that permission is for: the URL without its
// query.
func (t Target) Resource() perm.Resource { return t.resource }

// origin returns scheme, host and port.
func (t Target) origin() string {
	return string(t.resource.Kind()) + "://" + hostPort(t.resource.Host(), t.resource.Port())
}

// path returns the path as it is sent.
func (t Target) path() string {
	_, rest, _ := strings.Cut(t.resource.String(), "://")
	_, tail, _ := strings.Cut(rest, "/")
	if t.slash {
		tail += "/"
	}
	return "/" + tail
}

// authority returns the host in the form of a Host header and a URL.
func (t Target) authority() string {
	_, rest, _ := strings.Cut(t.resource.String(), "://")
	authority, _, _ := strings.Cut(rest, "/")
	return authority
}

// url returns the URL as it is sent.
func (t Target) url() (*url.URL, error) {
	raw := t.path()
	plain, err := url.PathUnescape(raw)
	if err != nil {
		return nil, err
	}
	return &url.URL{Scheme: string(t.resource.Kind()), Host: t.authority(), Path: plain, RawPath: raw, RawQuery: t.query}, nil
}

// String returns the whole URL, with its query.
func (t Target) String() string {
	text := string(t.resource.Kind()) + "://" + t.authority() + t.path()
	if t.query != "" {
		text += "?" + t.query
	}
	return text
}

// Masked returns the URL for messages: without the values of its query, and
// truncated.
func (t Target) Masked() string {
	const most = 200
	text := string(t.resource.Kind()) + "://" + t.authority() + t.path()
	if t.query != "" {
		var names []string
		for pair := range strings.SplitSeq(t.query, "&") {
			name, _, valued := strings.Cut(pair, "=")
			if valued {
				name += "=…"
			}
			names = append(names, name)
		}
		text += "?" + strings.Join(names, "&")
	}
	if len(text) > most {
		text = text[:most] + "…"
	}
	return text
}

// follow parses the target of a redirect, which can be relative.
func (t Target) follow(location string) (Target, error) {
	if len(location) > maxURL {
		return Target{}, errors.New("the redirect leads to a URL that is too long")
	}
	from, err := t.url()
	if err != nil {
		return Target{}, err
	}
	ref, err := url.Parse(location)
	if err != nil {
		return Target{}, errors.New("the redirect leads to no valid URL")
	}
	to := from.ResolveReference(ref)
	to.Fragment, to.RawFragment = "", ""
	next, err := parseURL(to.String())
	if err != nil {
		return Target{}, fmt.Errorf("the redirect leads to a URL that is not valid: %w", err)
	}
	if t.resource.Kind() == perm.KindHTTPS && next.resource.Kind() != perm.KindHTTPS {
		return Target{}, errors.New("the redirect leads from https to http")
	}
	return next, nil
}
