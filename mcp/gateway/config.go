package gateway

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/jsonfile"
)

// Config is what a gateway is made of: servers, and what is known of their tools.
type Config struct {
	Servers []Server // by name
	// Warnings are of members that clients may understand and a gateway does not, each with its place.
	Warnings []string
}

// Server is one server. Either Command or URL says how it is reached.
type Server struct {
	Name string

	Command string   // a program that speaks over its standard files
	Args    []string // of the program
	Env     map[string]string
	Dir     string // where it is started; empty: where remit is

	URL     string
	Headers map[string]string
	SSE     bool // it speaks the transport that the revision 2024-11-05 has
	OAuth   OAuth

	Sandbox *Sandbox // nil: it runs as whoever runs remit
	Tools   map[string]Entry

	Resources, Prompts     Entry // how they are read; a zero class is pure, as the protocol has it
	NoResources, NoPrompts bool  // they are not served

	Roots          []string        // names of the runtime's roots that it is told of; none: it is told that there is nothing to ask for
	ClientFeatures []ClientFeature // that reach the client of a call, if the policy permits; nil: Elicitation alone
}

// Sandbox says that a server by command runs in the sandbox.
type Sandbox struct {
	Roots    []string // names of the runtime's roots that it works in
	Readable []string // folders of the host, beside those of the system, that it may read: its own code
	Network  bool     // it may use the network; its calls can then not be taken back by the sandbox alone
}

// serverOK is stricter than what the protocol takes: the two underscores that part server and tool can only be those.
var serverOK = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]|_[A-Za-z0-9.-])*$`)

const serverRule = "a server's name is letters, digits and . - _ in any order, begins with a letter or digit, does not end with _ and has no two _ in a row"

// ParseConfig reads a configuration: a file as clients of the protocol have it, with comments, whose member "mcpServers" (or
// "servers") lists the servers, and beside it "remit", which says what is known of them. A name such as ${HOME} or
// ${TOKEN:-none} in what a server is started with stands for what env returns. Name is for messages, each of which has its
// line and column.
func ParseConfig(name string, text []byte, env func(string) (string, bool)) (Config, error) {
	strict, err := hujson.Standardize(slices.Clone(text))
	if err != nil {
		strict = text // whose reader says what is wrong, in its own words
	}
	report := &jsonfile.Report{}
	r := reader{report: report, env: env}
	r.file(jsonfile.Parse(report, name, strict))
	if err := report.Err(); err != nil {
		return Config{}, err
	}
	return r.config, nil
}

type reader struct {
	report *jsonfile.Report
	env    func(string) (string, bool)
	config Config
}

func (r *reader) file(root *jsonfile.Node) {
	if root == nil || !root.IsObject() {
		return
	}
	list := root.Get("mcpServers")
	if list == nil {
		list = root.Get("servers")
	}
	if list == nil {
		root.Refuse(`"mcpServers" is missing: it lists the servers by their names`)
		return
	}
	for _, m := range root.Members() {
		if !slices.Contains([]string{"mcpServers", "servers", "remit", "$schema"}, m.Name) {
			r.warn(m)
		}
	}
	if !list.IsObject() {
		return
	}
	for _, m := range list.Members() {
		r.server(m)
	}
	r.remit(root.Get("remit"), list)
	slices.SortFunc(r.config.Servers, func(a, b Server) int { return cmp.Compare(a.Name, b.Name) })
	r.alike(list)
}

// alike refuses names that a reader, or a system that folds case, could take for one another.
func (r *reader) alike(list *jsonfile.Node) {
	seen := map[string]string{}
	for _, s := range r.config.Servers {
		like := likeness(s.Name)
		if other, taken := seen[like]; taken {
			list.Get(s.Name).RefuseName("the servers %q and %q could be taken for one another; rename one", other, s.Name)
		}
		seen[like] = s.Name
	}
}

func (r *reader) warn(n *jsonfile.Node) {
	r.config.Warnings = append(r.config.Warnings, fmt.Sprintf("%s: %q is not understood, and left alone", n.Place(), n.Name))
}

func (r *reader) server(n *jsonfile.Node) {
	if !n.IsObject() {
		return
	}
	s := Server{Name: n.Name, Tools: map[string]Entry{}}
	if len(s.Name) > 64 || !serverOK.MatchString(s.Name) {
		n.RefuseName("%s, and at most 64 characters", serverRule)
		return
	}
	if off := n.Get("disabled"); off != nil && off.Bool() {
		return
	}
	known := []string{"command", "args", "env", "cwd", "type", "url", "serverUrl", "headers", "oauth", "disabled"}
	for _, m := range n.Members() {
		if !slices.Contains(known, m.Name) {
			r.warn(m)
		}
	}
	command, link := n.Get("command"), n.Get("url")
	if link == nil {
		link = n.Get("serverUrl")
	}
	switch {
	case command != nil && link != nil:
		n.Refuse("it has a command and a url: it is reached in one way")
	case command != nil:
		r.command(&s, n)
	case link != nil:
		r.link(&s, n, link)
	default:
		n.Refuse(`"command" or "url" is missing`)
	}
	r.config.Servers = append(r.config.Servers, s)
}

func (r *reader) command(s *Server, n *jsonfile.Node) {
	if t := n.Get("type"); t != nil && t.Text() != "stdio" {
		t.Refuse(`a server with a command is of type "stdio"`)
	}
	if s.Command = r.expand(n.Get("command")); s.Command == "" {
		n.Get("command").Refuse("it is empty")
	}
	for _, a := range n.Get("args").Elements() {
		s.Args = append(s.Args, r.expand(a))
	}
	if args := n.Get("args"); args != nil {
		args.Texts() // which refuses what is no list of texts
	}
	s.Env = r.texts(n.Get("env"))
	if dir := n.Get("cwd"); dir != nil {
		s.Dir = r.expand(dir)
	}
}

func (r *reader) link(s *Server, n, link *jsonfile.Node) {
	if t := n.Get("type"); t != nil {
		switch kind := t.Text(); kind {
		case "sse":
			s.SSE = true
		case "http", "streamable-http", "streamableHttp":
		default:
			t.Refuse(`a server with a url is of type "http" or "sse"`)
		}
	}
	s.URL, s.Headers = r.expand(link), r.texts(n.Get("headers"))
	u, err := url.Parse(s.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil {
		link.Refuse("want a URL of http or https, with a host and without a user")
	}
	r.oauth(s, n.Get("oauth"))
}

// oauth reads how to log in, as some clients have it.
func (r *reader) oauth(s *Server, n *jsonfile.Node) {
	if n == nil || !n.IsObject() {
		return
	}
	for _, m := range n.Members() {
		if !slices.Contains([]string{"clientId", "clientSecret", "issuer", "clientMetadataUrl", "callbackPort", "scopes"}, m.Name) {
			r.warn(m)
		}
	}
	s.OAuth = OAuth{ClientID: r.expand(n.Get("clientId")), ClientSecret: r.expand(n.Get("clientSecret")), Issuer: r.expand(n.Get("issuer")), MetadataURL: r.expand(n.Get("clientMetadataUrl"))}
	if scopes := n.Get("scopes"); scopes != nil {
		s.OAuth.Scopes = scopes.Texts()
	}
	if port := n.Get("callbackPort"); port != nil {
		var err error
		if s.OAuth.CallbackPort, err = strconv.Atoi(string(port.Value.Canonical())); err != nil || s.OAuth.CallbackPort < 1 || s.OAuth.CallbackPort > 65535 {
			port.Refuse("want the number of a port, from 1 to 65535")
		}
	}
	switch {
	case s.OAuth.ClientSecret != "" && s.OAuth.ClientID == "":
		n.Refuse(`"clientSecret" is of a "clientId", which is missing`)
	case s.OAuth.ClientSecret != "" && s.OAuth.Issuer == "":
		n.Refuse(`"issuer" is missing: it says which authorization server "clientSecret" is for, and no other is given it`)
	}
}

func (r *reader) texts(n *jsonfile.Node) map[string]string {
	if n == nil || !n.IsObject() {
		return nil
	}
	out := map[string]string{}
	for _, m := range n.Members() {
		out[m.Name] = r.expand(m)
	}
	return out
}

// variable is ${NAME}, ${NAME:-default}, ${env:NAME} or ${env.NAME}, as clients write it.
var variable = regexp.MustCompile(`\$\{(?:env[:.])?([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)

// expand returns a text with the names of variables replaced. What a variable holds is not looked at again.
func (r *reader) expand(n *jsonfile.Node) string {
	if n == nil {
		return ""
	}
	if n.Value.Kind() != canon.String {
		return n.Text() // which refuses it
	}
	return variable.ReplaceAllStringFunc(n.Text(), func(found string) string {
		parts := variable.FindStringSubmatch(found)
		if value, ok := r.env(parts[1]); ok {
			return value
		}
		if parts[2] == "" {
			n.Refuse("the variable %s is not set; set it, or write ${%s:-default}", parts[1], parts[1])
		}
		return parts[3]
	})
}

// likeness is the same for names that could be taken for one another.
func likeness(name string) string {
	return strings.NewReplacer("_", "", "-", "", ".", "").Replace(strings.ToLower(name))
}
