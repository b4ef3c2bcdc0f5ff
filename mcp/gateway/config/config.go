package config

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"

	"github.com/tailscale/hujson"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/jsonfile"
	"github.com/remit-dev/remit/mcp/gateway/internal/naming"
)

// Config is the configuration of a gateway: servers, and the entries of their
// tools.
type Config struct {
	Servers []Server // by name
	// Warnings are about members that clients can understand and the gateway
	// does not, each with its position.
	Warnings []string
}

// Server is the configuration of one server. Either Command or URL is set.
type Server struct {
	Name string

	Command string   // program that communicates over standard input and output
	Args    []string // of Command
	Env     map[string]string
	Dir     string // working folder; default: that of remit

	URL     string
	Headers map[string]string
	SSE     bool // use the transport of revision 2024-11-05
	OAuth   OAuth

	Sandbox *Sandbox // nil: runs as the user who runs remit
	Tools   map[string]Entry

	Resources, Prompts     Entry // entries for reads; a zero effect class is pure, as the protocol says
	NoResources, NoPrompts bool  // do not serve them

	Roots          []string        // names of the runtime's roots that the server can list; none: the roots feature is off
	ClientFeatures []ClientFeature // that the server can use, if the policy permits; nil: Elicitation alone
}

// Sandbox runs a server with a Command in the sandbox.
type Sandbox struct {
	Roots    []string // names of the runtime's roots that it works in
	Readable []string // folders of the host that it can read, beside those of the system: its own code
	Network  bool     // it can use the network; the sandbox alone cannot revert its calls then
}

// serverOK is stricter than the protocol: the two underscores that separate
// server and tool must be unambiguous.
var serverOK = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]|_[A-Za-z0-9.-])*$`)

const serverRule = "a server's name is letters, digits and . - _ in any order, begins with a letter or digit, does not end with _ and has no two _ in a row"

// Parse parses a configuration file in the format of MCP clients, with
// comments. The member "mcpServers" (or "servers") lists the servers, and
// "remit" holds their entries. A variable such as ${HOME} or ${TOKEN:-none} in
// a server's start settings is replaced by what env returns. Name appears in
// messages, each with line and column.
func Parse(name string, text []byte, env func(string) (string, bool)) (Config, error) {
	strict, err := hujson.Standardize(slices.Clone(text))
	if err != nil {
		strict = text // the strict parser reports the fault
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
		if !slices.Contains(names(fileMembers), m.Name) {
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

// alike rejects names that a reader, or a system that folds case, could
// confuse.
func (r *reader) alike(list *jsonfile.Node) {
	seen := map[string]string{}
	for _, s := range r.config.Servers {
		like := naming.Likeness(s.Name)
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
	for _, m := range n.Members() {
		if !slices.Contains(names(serverMembers), m.Name) {
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
		args.Texts() // reports a value that is no list of strings
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

// oauth parses the login settings, in the format of some clients.
func (r *reader) oauth(s *Server, n *jsonfile.Node) {
	if n == nil || !n.IsObject() {
		return
	}
	for _, m := range n.Members() {
		if !slices.Contains(names(oauthMembers), m.Name) {
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

// variable matches ${NAME}, ${NAME:-default}, ${env:NAME} or ${env.NAME}, as
// clients write it.
var variable = regexp.MustCompile(`\$\{(?:env[:.])?([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)

// expand returns a text with its variables replaced. It does not expand the
// values again.
func (r *reader) expand(n *jsonfile.Node) string {
	if n == nil {
		return ""
	}
	if n.Value.Kind() != canon.String {
		return n.Text() // reports the fault
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
