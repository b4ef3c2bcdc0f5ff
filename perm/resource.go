package perm

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Kind says what sort of thing a resource is; it is the scheme of its text.
type Kind string

// The kinds, each with the form of its texts.
const (
	KindFile   Kind = "file"   // file://root/a/b; file://root is the root itself
	KindHTTPS  Kind = "https"  // https://host[:port]/a/b
	KindHTTP   Kind = "http"   // http://host[:port]/a/b
	KindExec   Kind = "exec"   // exec://name, found by the host's search path, or exec:///absolute/path
	KindDB     Kind = "db"     // db://database[/table][?statement=insert]
	KindSecret Kind = "secret" // secret://name
	KindTool   Kind = "tool"   // tool://name
	KindMCP    Kind = "mcp"    // mcp://server[/tool]; what a server has to be read: mcp://server/resource/uri, mcp://server/prompt/name; what it asks for: mcp://server/sampling/text
)

// ErrOutside says that a path leaves its root: it is absolute, or climbs above
// where it starts. Such a path is refused before any policy is asked.
var ErrOutside = errors.New("path outside its root")

// Resource is one exact thing that can be touched. It is immutable and
// comparable: two resources are equal exactly when their texts are. The zero
// Resource is invalid and nothing matches it.
//
// Its text is a URI of one canonical form:
//
//   - Segments are raw bytes, percent-encoded in upper case. Left plain are
//     letters, digits and -._~!$&'()+,;=:@ (what RFC 3986 allows in a segment,
//     without the star, which patterns use). Letters, digits and -._~ must be
//     plain; the others, lower-case digits and letters beyond ASCII are accepted
//     either way and come out canonical.
//   - Segments that are empty, "." or "..", NUL bytes and encoded slashes are
//     refused. So are texts over 8 KiB.
//   - Roots are a lower-case letter and up to 31 of a-z 0-9 _ -. Databases,
//     servers, secrets and tools have names of up to 128 letters, digits and _.-
//     that start with a letter, a digit or _.
//   - Hosts are lower-case ASCII (punycode for the rest) or an IP address in its
//     one usual spelling. User, zone, fragment and a dot at the end are refused,
//     and the default port is dropped.
//   - URLs end without a slash, and have no query: permission is about host and
//     path, and a rule on one spelling must not be passed by the other.
//   - A table without a statement stands for the table whatever is done to it.
type Resource struct {
	text      string
	kind      Kind
	authority string // root, host, program, database, server or name; decoded
	path      string // decoded segments joined by slashes, which no segment holds
	statement string
	port      uint16
}

// ParseResource reads the text of a resource. Errors say what is valid and do
// not repeat the text, since it may come from an argument.
func ParseResource(text string) (Resource, error) {
	p, err := parse(text, false)
	if err != nil {
		return Resource{}, fmt.Errorf("not a valid resource: %w", err)
	}
	return p.resource(), nil
}

// Resource makes a resource of a kind from decoded parts: the authority (root,
// host with its port, program, database, server or name; "" for a program given
// by its absolute path) and the segments of its path.
func (k Kind) Resource(authority string, segments ...string) (Resource, error) {
	p, err := literal(k, authority, segments)
	if err != nil {
		return Resource{}, fmt.Errorf("not a valid resource: %w", err)
	}
	return p.resource(), nil
}

// FileResource makes the resource of a file from the name of its root and a
// clean relative path of raw bytes with slashes; "" and "." are the root itself.
// The error wraps ErrOutside when the path leaves the root.
func FileResource(root, path string) (Resource, error) {
	segments, err := relative(path)
	if err != nil {
		return Resource{}, fmt.Errorf("not a valid resource: %w", err)
	}
	return KindFile.Resource(root, segments...)
}

// WithStatement returns r, which must be of kind db, for one kind of statement,
// such as insert; "" is any.
func (r Resource) WithStatement(statement string) (Resource, error) {
	p := r.pattern()
	p.statement = statement
	p, err := p.seal()
	if err != nil {
		return Resource{}, fmt.Errorf("not a valid resource: %w", err)
	}
	return p.resource(), nil
}

// String returns the canonical text, "" for the zero Resource.
func (r Resource) String() string { return r.text }

// IsZero reports whether r is the zero Resource.
func (r Resource) IsZero() bool { return r.kind == "" }

// Kind returns what sort of thing r is, "" for the zero Resource.
func (r Resource) Kind() Kind { return r.kind }

// Authority returns the decoded part before the path: a root, a host without
// its port, a program's name, a database, a server or a name.
func (r Resource) Authority() string { return r.authority }

// Root returns the name of a file's root, "" for other kinds.
func (r Resource) Root() string {
	if r.kind != KindFile {
		return ""
	}
	return r.authority
}

// Host returns the host of a URL, an IPv6 address without its brackets, and ""
// for other kinds.
func (r Resource) Host() string {
	if !r.kind.url() {
		return ""
	}
	return r.authority
}

// Port returns the port of a URL, the default of its scheme included, and 0 for
// other kinds.
func (r Resource) Port() int { return int(r.port) }

// Program returns what an exec resource runs: a name, or an absolute path.
func (r Resource) Program() string {
	switch {
	case r.kind != KindExec:
		return ""
	case r.authority == "":
		return "/" + r.path
	default:
		return r.authority
	}
}

// Statement returns the kind of statement of a db resource, "" for any.
func (r Resource) Statement() string { return r.statement }

// Path returns the decoded segments joined by slashes, without one in front.
// Its bytes need not be UTF-8.
func (r Resource) Path() string { return r.path }

// Segments returns the decoded segments of the path in a new slice.
func (r Resource) Segments() []string {
	if r.path == "" {
		return nil
	}
	return strings.Split(r.path, "/")
}

// Name returns the last segment of the path or, where there is none, the
// authority of what has a name of its own: not that of a file or a URL.
func (r Resource) Name() string {
	switch {
	case r.path != "":
		return path.Base(r.path)
	case r.kind == KindFile || r.kind.url():
		return ""
	default:
		return r.authority
	}
}

// Facts returns r in the parts that policies see. Facts are valid UTF-8: a byte
// of a name that is not comes percent-encoded, so that two names may look alike
// there. Only the text tells them apart always.
func (r Resource) Facts() ResourceFacts {
	f := ResourceFacts{Kind: string(r.kind), Text: r.text, Name: printable(r.Name())}
	authority, tail := r.authority, printable(r.path)
	switch r.kind {
	case KindFile:
		f.Root, f.Path, f.Ext = authority, tail, extension(f.Name)
	case KindHTTP, KindHTTPS:
		f.Scheme, f.Host, f.Port = string(r.kind), authority, r.Port()
		f.Path, f.Ext = tail, extension(f.Name)
	case KindExec:
		f.Program, f.Path = printable(r.Program()), tail
	case KindDB:
		f.Database, f.Table, f.Statement = authority, tail, r.statement
	case KindMCP:
		f.Server, f.Tool = authority, tail
	case KindTool:
		f.Tool = authority
	case KindSecret: // its name says it all
	}
	if f.Path != "" {
		f.Segments = strings.Split(f.Path, "/")
	}
	return f
}

// MarshalText writes the canonical text; the zero Resource has none.
func (r Resource) MarshalText() ([]byte, error) {
	if r.IsZero() {
		return nil, errors.New("the zero resource has no text")
	}
	return []byte(r.text), nil
}

// UnmarshalText reads a text as ParseResource does.
func (r *Resource) UnmarshalText(text []byte) error {
	parsed, err := ParseResource(string(text))
	if err == nil {
		*r = parsed
	}
	return err
}

// pattern returns r as the pattern that matches nothing but r.
func (r Resource) pattern() Pattern {
	p := Pattern{kind: r.kind, authority: word(r.authority), port: r.port, statement: r.statement, text: r.text}
	for _, s := range r.Segments() {
		p.path = append(p.path, word(s))
	}
	return p
}

func (k Kind) url() bool { return k == KindHTTP || k == KindHTTPS }

func kinds() []Kind {
	return []Kind{KindFile, KindHTTPS, KindHTTP, KindExec, KindDB, KindSecret, KindTool, KindMCP}
}

func (k Kind) valid() bool { return slices.Contains(kinds(), k) }

// printable replaces the bytes of s that are not UTF-8.
func printable(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, "%%%02X", s[0])
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// extension is what follows the last dot of a name, with the dot; a dot alone
// is none. A name that starts with its only dot is all extension, so that a rule
// on ".env" also sees "prod.env".
func extension(name string) string {
	ext := strings.ToLower(path.Ext(name))
	if ext == "." {
		return ""
	}
	return ext
}
