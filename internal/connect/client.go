package connect

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/suggest"
)

// Environment describes the system that Connect works on: home folder, project,
// operating system. Nothing comes from the process, so a test needs no home
// folder.
type Environment struct {
	OS      string // as in runtime.GOOS; selects the places of client files
	Home    string // home folder of the user
	Project string // folder; "" means none
	Command string // absolute path of remit, for client entries
	State   string // folder for records and backups
	Gateway string // configuration of the gateway; default: one for the user and one for each project
	// Workspace is the folder that the gateway of the user's servers works in.
	// Default: the previous one, or else the folder in which the client starts
	// it.
	Workspace string
	// Keep and KeepLast are the gateway's retention, in the form of its flags
	// --keep and --keep-last. Default: the previous values, or else none.
	Keep, KeepLast string
	// Journal is the location of a journal that the gateway shares with other
	// nodes. Default: the previous one, or else none.
	Journal string
	// Hooks lists the scopes in which hooks lead the client's own tools to
	// remit. The zero value is no hooks.
	Hooks     []Scope
	HooksOnly bool                // leave the MCP servers with the client
	Env       func(string) string // nil: no variables are set
}

func (p Environment) env(name string) string {
	if p.Env == nil {
		return ""
	}
	return p.Env(name)
}

// Scope says where the servers of a file apply.
type Scope string

// The scopes. The gateway has another name in each: a client that finds a name
// in two scopes uses only one of them.
const (
	User    Scope = "user"    // the user's, in every project
	Project Scope = "project" // all users of the project
	Local   Scope = "local"   // the user's, in one project
)

func (s Scope) name() string {
	if s == User {
		return "remit"
	}
	return "remit-" + string(s)
}

// source is one file of a client. It has tables of servers, hooks, or both, or
// remit writes it whole.
type source struct {
	path    string
	scope   Scope
	project string
	format  format
	layout  layout        // zero: no servers
	hooks   []listElement // elements that run remit for the client's own tools
	begin   string        // text of a new file, to which the hooks are added
	content string        // text of a file that remit writes whole
	tools   bool          // without it, the client's own tools do not lead to remit
	off     offSwitch
}

// offSwitch is a value in a client's file that turns off all its hooks.
type offSwitch struct {
	path  []string
	value bool
}

// Client is a program that starts MCP servers. [Clients] returns all of them;
// the zero Client has no files.
type Client struct {
	name, title string
	dialect     variableSyntax
	stdio       bool                      // entries have the type stdio
	forwards    bool                      // passes only the variables that an entry names
	guard       func(Environment) failure // what happens to a call if its hook fails; nil: the client has no hooks
	advice      string
	only        string // path of the only file, for a client without a name
	sources     func(Environment) []source
}

// Name returns the client's name on the command line.
func (c Client) Name() string { return c.name }

// Title returns the client's product name.
func (c Client) Title() string { return c.title }

// Clients lists the clients that can be connected.
func Clients() []Client {
	return []Client{
		{name: "claude-code", title: "Claude Code", dialect: shell, stdio: true, guard: blocked, sources: claudeCode},
		{name: "claude-desktop", title: "Claude Desktop", dialect: literal, sources: claudeDesktop},
		{name: "codex", title: "Codex", dialect: literal, forwards: true, guard: blockedUnlessLate, advice: "Codex runs a hook only after you trusted it: open /hooks in Codex once", sources: codex},
		{name: "cursor", title: "Cursor", dialect: editor, guard: blocked, sources: cursor},
		{name: "gemini-cli", title: "Gemini CLI", dialect: posix, guard: blockedUnlessLate, sources: geminiCLI},
		{name: "opencode", title: "opencode", dialect: braces, guard: blocked, sources: opencode},
		{name: "vscode", title: "VS Code", dialect: editor, stdio: true, sources: vscode},
		{name: "windsurf", title: "Windsurf", dialect: editor, sources: windsurf},
	}
}

// HasHooks reports whether hooks in a scope lead the client's own tools to
// remit.
func (c Client) HasHooks(p Environment, scope Scope) bool {
	return slices.ContainsFunc(c.files(p), func(s source) bool { return s.tools && s.scope == scope })
}

// files returns the client's files, each once: a project can be the home
// folder.
func (c Client) files(p Environment) (all []source) {
	if c.sources == nil {
		return nil
	}
	seen := map[string]bool{}
	for _, s := range c.sources(p) {
		real, err := filepath.EvalSymlinks(s.path)
		if err != nil {
			real = s.path
		}
		if !seen[real] {
			all = append(all, s)
		}
		seen[real] = true
	}
	return all
}

// ClientByName finds a client by its name.
func ClientByName(name string) (Client, error) {
	var names []string
	for _, c := range Clients() {
		if c.name == name {
			return c, nil
		}
		names = append(names, c.name)
	}
	hint := "valid are " + strings.Join(names, ", ")
	if near := suggest.Name(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return Client{}, fmt.Errorf("there is no client %q; %s", name, hint)
}

// inProject adds the file that a client has in a project.
func inProject(p Environment, all []source, s source, path ...string) []source {
	if p.Project == "" {
		return all
	}
	s.path, s.scope, s.project = filepath.Join(append([]string{p.Project}, path...)...), Project, p.Project
	return append(all, s)
}

// claudeHome returns the folder of ~/.claude.json, and that of the settings.
func claudeHome(p Environment) (home, settings string) {
	if dir := p.env("CLAUDE_CONFIG_DIR"); filepath.IsAbs(dir) {
		return dir, dir
	}
	return p.Home, filepath.Join(p.Home, ".claude")
}

func claudeCode(p Environment) []source {
	home, dir := claudeHome(p)
	user := source{path: filepath.Join(home, ".claude.json"), scope: User, format: jsonFormat{}, layout: layout{"mcpServers", true}}
	all := inProject(p, []source{user}, source{format: jsonFormat{}, layout: layout{key: "mcpServers"}}, ".mcp.json")
	settings := func(scope Scope, project, dir, name string) {
		all = append(all, source{
			path: filepath.Join(dir, name), scope: scope, project: project, format: jsonFormat{}, hooks: claudeHooks(p), tools: true,
			off: offSwitch{[]string{"disableAllHooks"}, true},
		})
	}
	settings(User, "", dir, "settings.json")
	all = append(all, claudeCommands(p, User, "", dir)...)
	if p.Project != "" {
		dir := filepath.Join(p.Project, ".claude")
		settings(Project, p.Project, dir, "settings.json")
		settings(Local, p.Project, dir, "settings.local.json")
		all = append(all, claudeCommands(p, Project, p.Project, dir)...)
	}
	return all
}

func claudeDesktop(p Environment) []source {
	return []source{{
		path: filepath.Join(p.config(), "Claude", "claude_desktop_config.json"), scope: User, format: jsonFormat{}, layout: layout{key: "mcpServers"},
	}}
}

func codex(p Environment) []source {
	home := filepath.Join(p.Home, ".codex")
	if dir := p.env("CODEX_HOME"); filepath.IsAbs(dir) {
		home = dir
	}
	s := source{
		path: filepath.Join(home, "config.toml"), scope: User, format: tomlFormat{}, layout: layout{key: "mcp_servers"},
		off: offSwitch{[]string{"features", "hooks"}, false},
	}
	all := inProject(p, []source{s}, s, ".codex", "config.toml")
	h := source{path: filepath.Join(home, "hooks.json"), scope: User, format: jsonFormat{}, hooks: codexHooks(p), tools: true}
	return inProject(p, append(all, h), h, ".codex", "hooks.json")
}

func cursor(p Environment) []source {
	s := source{path: filepath.Join(p.Home, ".cursor", "mcp.json"), scope: User, format: jsonFormat{}, layout: layout{key: "mcpServers"}}
	all := inProject(p, []source{s}, s, ".cursor", "mcp.json")
	h := source{
		path: filepath.Join(p.Home, ".cursor", "hooks.json"), scope: User, format: jsonFormat{}, hooks: cursorHooks(p), tools: true,
		begin: "{\n  \"version\": 1\n}\n",
	}
	return inProject(p, append(all, h), h, ".cursor", "hooks.json")
}

func geminiCLI(p Environment) []source {
	home := p.Home
	if dir := p.env("GEMINI_CLI_HOME"); filepath.IsAbs(dir) {
		home = dir
	}
	s := source{
		path: filepath.Join(home, ".gemini", "settings.json"), scope: User, format: jsonFormat{}, layout: layout{key: "mcpServers"},
		hooks: geminiHooks(p), tools: true, off: offSwitch{[]string{"hooksConfig", "enabled"}, false},
	}
	return inProject(p, []source{s}, s, ".gemini", "settings.json")
}

// opencode reads the same folders on every system.
func opencode(p Environment) (all []source) {
	dir := filepath.Join(p.Home, ".config", "opencode")
	if base := p.env("XDG_CONFIG_HOME"); filepath.IsAbs(base) {
		dir = filepath.Join(base, "opencode")
	}
	s := source{scope: User, format: jsonFormat{}, layout: layout{key: "mcp"}}
	for _, name := range []string{"opencode.json", "opencode.jsonc", "config.json"} {
		s.path = filepath.Join(dir, name)
		all = append(all, s)
	}
	for _, name := range []string{"opencode.json", "opencode.jsonc"} {
		all = inProject(p, all, s, name)
		all = inProject(p, all, s, ".opencode", name)
	}
	all = append(all, opencodeFile(p, User, "", dir))
	if p.Project != "" {
		all = append(all, opencodeFile(p, Project, p.Project, filepath.Join(p.Project, ".opencode")))
	}
	return all
}

// FileClients returns the clients of files that [FileClient] connected.
func FileClients(p Environment) (all []Client, err error) {
	records, err := p.records()
	for _, r := range records {
		if r.Client == "file" {
			all = append(all, FileClient(r.Path, r.Key))
		}
	}
	return all, err
}

// FileClient returns a client that has one file, with a table "mcpServers" or
// "servers" of MCP servers.
func FileClient(path, shape string) Client {
	return Client{name: "file", title: path, only: path, sources: func(Environment) []source {
		return []source{{path: path, scope: User, format: jsonFormat{}, layout: layout{key: shape}}}
	}}
}

func vscode(p Environment) []source {
	s := source{path: filepath.Join(p.config(), "Code", "User", "mcp.json"), scope: User, format: jsonFormat{}, layout: layout{key: "servers"}}
	return inProject(p, []source{s}, s, ".vscode", "mcp.json")
}

func windsurf(p Environment) []source {
	return []source{{
		path: filepath.Join(p.Home, ".codeium", "windsurf", "mcp_config.json"), scope: User, format: jsonFormat{}, layout: layout{key: "mcpServers"},
	}}
}

// config returns the folder of the user's configuration files.
func (p Environment) config() string {
	switch p.OS {
	case "darwin":
		return filepath.Join(p.Home, "Library", "Application Support")
	case "windows":
		if dir := p.env("APPDATA"); filepath.IsAbs(dir) {
			return dir
		}
		return filepath.Join(p.Home, "AppData", "Roaming")
	default:
		if dir := p.env("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
			return dir
		}
		return filepath.Join(p.Home, ".config")
	}
}

// gateway returns the gateway configuration for servers of a scope. Each
// project has its own: other projects must not reach its servers.
func (p Environment) gateway(scope Scope, project string) string {
	dir := filepath.Join(p.config(), "remit")
	switch {
	case p.Gateway != "":
		return p.Gateway
	case scope == User:
		return filepath.Join(dir, "gateway.json")
	default:
		name := filepath.Base(project) + "-" + digest([]byte(project))[:12]
		if scope == Local {
			name += "-local"
		}
		return filepath.Join(dir, "projects", name+".json")
	}
}

// remit returns the entry that starts the gateway, with further arguments. If
// the client passes only named variables, the entry names them.
func (c Client) remit(p Environment, gateway string, more []string, variables *variableRewriter) (e entry) {
	args := append([]string{"gateway", "--config", gateway}, more...)
	switch {
	case c.dialect == braces:
		e.set("type", "local")
		e.set("command", append([]string{p.Command}, args...))
		e.set("enabled", true)
		return e
	case c.stdio:
		e.set("type", "stdio")
	}
	e.set("command", p.Command)
	e.set("args", args)
	switch {
	case len(variables.names) == 0:
	case c.forwards:
		e.set("env_vars", variables.names)
	case c.dialect == posix: // Gemini CLI passes no secrets that an entry does not name
		e.set("env", variables.texts)
	}
	return e
}

// setTimeout gives the gateway's entry the longest timeout of its servers.
func (e *entry) setTimeout(servers []removedServer) {
	for _, name := range []string{"startup_timeout_sec", "tool_timeout_sec", "timeout"} {
		longest, raw := 0.0, json.RawMessage(nil)
		for _, s := range servers {
			is, _ := s.Entry.get(name)
			n, _ := decoded(is).(json.Number)
			if f, err := n.Float64(); err == nil && f > longest {
				longest, raw = f, is
			}
		}
		if raw != nil {
			*e = append(*e, field{name, raw})
		}
	}
}

// isGateway reports whether an entry starts the gateway.
func isGateway(e entry) bool {
	command, _ := e.text("command")
	raw, _ := e.get("args")
	args, _ := decoded(raw).([]any)
	return strings.Contains(filepath.Base(command), "remit") && len(args) > 0 && args[0] == "gateway"
}
