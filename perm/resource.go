package perm

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Kind is the kind of a resource. It is the scheme of the resource's text.
type Kind string

// The kinds, each with the form of its texts.
const (
	KindFile   Kind = "file"   // file://root/a/b; file://root is the root itself
	KindHTTPS  Kind = "https"  // https://host[:port]/a/b
	KindHTTP   Kind = "http"   // http://host[:port]/a/b
	KindExec   Kind = "exec"   // exec://name, found in the host's search path, or exec:///absolute/path
	KindDB     Kind = "db"     // db://database[/table][?statement=insert]
	KindSecret Kind = "secret" // secret://name
	KindTool   Kind = "tool"   // tool://name
	KindMCP    Kind = "mcp"    // mcp://server[/tool]; to read: mcp://server/resource/uri, mcp://server/prompt/name; client request of the server: mcp://server/sampling/text
)

// OutsideRoot is the root of resources that name a file outside every root, by
// its absolute path without the first slash. A policy can decide about such a
// file. No handle opens it, and no runtime has a root of that name.
const OutsideRoot = "outside"

// ErrOutside states that a path leaves its root: it is absolute, or climbs
// above its start. Such a path is refused before any policy decision.
var ErrOutside = errors.New("path outside its root")

// Resource is one exact resource that a call can touch. It is immutable and
// comparable: two resources are equal exactly if their texts are. The zero
// Resource is invalid, and no pattern matches it.
//
// Its text is a URI in canonical form:
//
//   - Segments are raw bytes, percent-encoded in upper case. Letters, digits
//     and -._~!$&'()+,;=:@ remain plain (what RFC 3986 allows in a segment,
//     without the star, which patterns use). Letters, digits and -._~ must be
//     plain. The parser accepts the others, lower-case digits and letters
//     beyond ASCII in either form, and makes them canonical.
//   - The parser refuses segments that are empty, "." or "..", NUL bytes,
//     encoded slashes, and texts over 8 KiB.
//   - Roots are a lower-case letter and up to 31 of a-z 0-9 _ -. Databases,
//     servers, secrets and tools have names of up to 128 letters, digits and
//     _.- that start with a letter, a digit or _.
//   - Hosts are lower-case ASCII (punycode for the rest) or an IP address in
//     its usual spelling. The parser refuses user, zone, fragment and a final
//     dot. It drops the default port.
//   - URLs end without a slash and have no query. Permission is about host and
//     path, and a second spelling must not bypass a rule.
//   - A table without a statement matches the table with every statement.
type Resource struct {
	text      string
	kind      Kind
	authority string // root, host, program, database, server or name; decoded
	path      string // decoded segments joined by slashes; no segment holds a slash
	statement string
	port      uint16
}

// ParseResource parses the text of a resource. Errors name the valid form. They
// do not repeat the text, because it can come from an argument.
func ParseResource(text string) (Resource, error) {
	p, err := parse(text, false)
	if err != nil {
		return Resource{}, fmt.Errorf("not a valid resource: %w", err)
	}
	return p.resource(), nil
}

// Resource creates a resource of a kind from decoded parts. The authority is a
// root, a host with its port, a program, a database, a server or a name. It is
// "" for a program given by its absolute path. The segments are those of the
// path.
func (k Kind) Resource(authority string, segments ...string) (Resource, error) {
	p, err := literal(k, authority, segments)
	if err != nil {
		return Resource{}, fmt.Errorf("not a valid resource: %w", err)
	}
	return p.resource(), nil
}

// FileResource creates the resource of a file from the name of its root and a
// clean relative path of raw bytes with slashes. "" and "." are the root
// itself. The error wraps ErrOutside if the path leaves the root.
func FileResource(root, path string) (Resource, error) {
	segments, err := relative(path)
	if err != nil {
		return Resource{}, fmt.Errorf("not a valid resource: %w", err)
	}
	return KindFile.Resource(root, segments...)
}

// WithStatement returns r, which must be of kind db, with one kind of
// statement, such as insert. "" is any statement.
func (r Resource) WithStatement(statement string) (Resource, error) {
	p := r.pattern()
	p.statement = statement
	p, err := p.seal()
	if err != nil {
		return Resource{}, fmt.Errorf("not a valid resource: %w", err)
	}
	return p.resource(), nil
}

// String returns the canonical text, or "" for the zero Resource.
func (r Resource) String() string { return r.text }

// IsZero reports whether r is the zero Resource.
func (r Resource) IsZero() bool { return r.kind == "" }

// Kind returns the kind of r, or "" for the zero Resource.
func (r Resource) Kind() Kind { return r.kind }

// Authority returns the decoded part before the path: a root, a host without
// its port, a program's name, a database, a server or a name.
func (r Resource) Authority() string { return r.authority }

// Root returns the root of a file, or "" for other kinds.
func (r Resource) Root() string {
	if r.kind != KindFile {
		return ""
	}
	return r.authority
}

// Host returns the host of a URL, an IPv6 address without its brackets, or ""
// for other kinds.
func (r Resource) Host() string {
	if !r.kind.url() {
		return ""
	}
	return r.authority
}

// Port returns the port of a URL, including the default of its scheme, or 0 for
// other kinds.
func (r Resource) Port() int { return int(r.port) }

// Program returns the program of an exec resource: a name, or an absolute path.
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

// Statement returns the kind of statement of a db resource, or "" for any.
func (r Resource) Statement() string { return r.statement }

// Path returns the decoded segments joined by slashes, without a leading slash.
// Its bytes need not be UTF-8.
func (r Resource) Path() string { return r.path }

// Segments returns the decoded segments of the path in a new slice.
func (r Resource) Segments() []string {
	if r.path == "" {
		return nil
	}
	return strings.Split(r.path, "/")
}

// Name returns the last segment of the path. Without a path it returns the
// authority, except for files and URLs.
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

// Facts returns r in the parts that policies see. Facts are valid UTF-8. Other
// bytes of a name come percent-encoded, so two different names can have the
// same facts. Only the text always distinguishes them.
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
	case KindSecret: // has only a name
	}
	if f.Path != "" {
		f.Segments = strings.Split(f.Path, "/")
	}
	return f
}

// MarshalText writes the canonical text. It returns an error for the zero
// Resource.
func (r Resource) MarshalText() ([]byte, error) {
	if r.IsZero() {
		return nil, errors.New("the zero resource has no text")
	}
	return []byte(r.text), nil
}

// UnmarshalText parses a text as ParseResource does.
func (r *Resource) UnmarshalText(text []byte) error {
	parsed, err := ParseResource(string(text))
	if err == nil {
		*r = parsed
	}
	return err
}

// pattern returns the pattern that matches only r.
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

// printable percent-encodes the bytes of s that are not UTF-8.
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

// extension returns the part of a name from its last dot. A lone dot is no
// extension. If the only dot is the first byte, the whole name is the
// extension. So a rule on ".env" also sees "prod.env".
func extension(name string) string {
	ext := strings.ToLower(path.Ext(name))
	if ext == "." {
		return ""
	}
	return ext
}
