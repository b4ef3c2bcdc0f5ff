package connect

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// disabled holds the servers that lists outside their entries disable, as in
// Claude Code.
type disabled []disabledServer

type disabledServer struct {
	scope    Scope  // User also applies in other scopes
	project  string // project folder; "" means everywhere
	names    []any
	all      bool     // every server
	patterns []string // names of tools, which begin with the name of a server
	reason   string   // default: it is disabled
}

func (d disabledServer) has(name string) bool {
	prefix := notInTool.ReplaceAllString(name, "_") + "_"
	return d.all || slices.Contains(d.names, any(name)) ||
		slices.ContainsFunc(d.patterns, func(p string) bool { return strings.HasPrefix(p, prefix) })
}

// notInTool is what opencode replaces in the name of a tool.
var notInTool = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// why says that a server is disabled. A user's server that is disabled in one
// project stays: behind the gateway it would be enabled there.
func (d disabled) why(scope Scope, project, name string) string {
	for _, off := range d {
		if off.scope == Project && scope != Project || !off.has(name) {
			continue
		}
		switch {
		case off.reason != "":
			return off.reason
		case off.project == "" || off.project == project:
			return "it is disabled"
		case scope == User:
			return "it is disabled in " + off.project
		}
	}
	return ""
}

// disabled reads the lists. An unreadable file counts as empty here; the code
// that needs it reports it.
func (c Client) disabled(p Environment) disabled {
	switch c.name {
	case "claude-code":
		return claudeDisabled(p)
	case "gemini-cli", "opencode":
		return c.listed(p)
	}
	return nil
}

// listed reads the lists that stand beside the servers in the same files.
func (c Client) listed(p Environment) (all disabled) {
	for _, src := range c.files(p) {
		if src.layout.key == "" {
			continue
		}
		v := valuesOf(src.path)
		switch c.dialect {
		case posix:
			all = all.add(User, "", at(v, []string{"mcp", "excluded"}))
			if allowed, _ := at(v, []string{"mcp", "allowed"}).([]any); len(allowed) > 0 {
				all = append(all, disabledServer{scope: User, all: true, reason: `the file has a list "mcp.allowed", which would not apply to it behind the gateway`})
			}
		case braces:
			patterns := toolPatterns(v)
			agents, _ := v["agent"].(map[string]any)
			for _, a := range agents {
				agent, _ := a.(map[string]any)
				patterns = append(patterns, toolPatterns(agent)...)
			}
			all = append(all, disabledServer{scope: User, patterns: patterns, reason: `"tools" or "permission" names its tools, which have other names behind the gateway`})
		case literal, shell, editor:
		}
	}
	return all
}

func toolPatterns(v map[string]any) (names []string) {
	for _, key := range []string{"tools", "permission"} {
		m, _ := v[key].(map[string]any)
		names = slices.AppendSeq(names, maps.Keys(m))
	}
	return names
}

func claudeDisabled(p Environment) (all disabled) {
	user := claudeCode(p)[0].path
	projects, _ := valuesOf(user)["projects"].(map[string]any)
	for name, v := range projects {
		project, _ := v.(map[string]any)
		all = all.add(User, name, project["disabledMcpServers"])
		all = all.add(Project, name, project["disabledMcpjsonServers"])
	}
	_, dir := claudeHome(p)
	all = all.add(Project, "", valuesOf(filepath.Join(dir, "settings.json"))["disabledMcpjsonServers"])
	if p.Project != "" {
		for _, name := range []string{"settings.json", "settings.local.json"} {
			settings := filepath.Join(p.Project, ".claude", name)
			all = all.add(Project, p.Project, valuesOf(settings)["disabledMcpjsonServers"])
		}
	}
	return all
}

func (d disabled) add(scope Scope, project string, names any) disabled {
	if list, ok := names.([]any); ok && len(list) > 0 {
		return append(d, disabledServer{scope: scope, project: project, names: list})
	}
	return d
}

// valuesOf returns the values of a JSON file, or nil if it is unreadable.
func valuesOf(path string) map[string]any {
	is, err := loadFile(path)
	if err != nil || is == nil {
		return nil
	}
	_, body, err := opened(is.text)
	if err != nil || tooDeep(body) >= 0 {
		return nil
	}
	v, _ := jsonFormat{}.values(body)
	return v
}
