package connect

import (
	"path/filepath"
	"slices"
)

// disabled holds the servers that lists outside their entries disable, as in
// Claude Code.
type disabled []disabledServer

type disabledServer struct {
	scope   Scope  // User also applies in other scopes
	project string // project folder; "" means everywhere
	names   []any
}

// why says that a server is disabled. A user's server that is disabled in one
// project stays: behind the gateway it would be enabled there.
func (d disabled) why(scope Scope, project, name string) string {
	for _, off := range d {
		if off.scope == Project && scope != Project || !slices.Contains(off.names, any(name)) {
			continue
		}
		switch {
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
func (c Client) disabled(p Environment) (all disabled) {
	if c.name != "claude-code" {
		return nil
	}
	user := claudeCode(p)[0].path
	projects, _ := valuesOf(user)["projects"].(map[string]any)
	for name, v := range projects {
		project, _ := v.(map[string]any)
		all = all.add(User, name, project["disabledMcpServers"])
		all = all.add(Project, name, project["disabledMcpjsonServers"])
	}
	settings := filepath.Join(filepath.Dir(user), ".claude", "settings.json")
	all = all.add(Project, "", valuesOf(settings)["disabledMcpjsonServers"])
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
		return append(d, disabledServer{scope, project, list})
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
