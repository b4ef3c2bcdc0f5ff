package policydiff

import (
	"encoding/json"
	"path"
	"strconv"
	"strings"

	"github.com/remit-dev/remit/perm"
)

// parts are the parts of a resource that can be set, before they are one text.
type parts struct {
	kind                       perm.Kind
	authority, path, statement string
	port                       string
}

// partsOf returns the parts of the facts of a resource.
func partsOf(facts map[string]any) parts {
	text := func(name string) string {
		s, _ := facts[name].(string)
		return s
	}
	p := parts{kind: perm.Kind(text("kind")), path: text("path"), statement: text("statement")}
	switch p.kind {
	case perm.KindFile:
		p.authority = text("root")
	case perm.KindHTTP, perm.KindHTTPS:
		p.authority = text("host")
		if n, ok := facts["port"].(float64); ok && n != 443 && n != 80 {
			p.port = strconv.Itoa(int(n))
		}
	case perm.KindExec:
		p.authority, p.path = text("program"), ""
	case perm.KindDB:
		p.authority, p.path = text("database"), text("table")
	case perm.KindMCP:
		p.authority, p.path = text("server"), text("tool")
	default:
		p.authority = text("name")
	}
	return p
}

// of returns the parts with another kind, and with an authority that fits it.
func (p parts) of(kind perm.Kind) parts {
	url := func(k perm.Kind) bool { return k == perm.KindHTTP || k == perm.KindHTTPS }
	if p.kind == kind || url(p.kind) && url(kind) {
		p.kind = kind
		return p
	}
	if !url(kind) && kind != perm.KindFile || !url(p.kind) && p.kind != perm.KindFile {
		p.path = ""
	}
	p.kind, p.port, p.statement = kind, "", ""
	switch kind {
	case perm.KindFile:
		p.authority = "workspace"
	case perm.KindHTTP, perm.KindHTTPS:
		p.authority = "example.com"
	case perm.KindExec:
		p.authority = "make"
	case perm.KindDB:
		p.authority, p.path = "main", "items"
	case perm.KindMCP:
		p.authority, p.path = "server", "tool"
	default:
		p.authority = "name"
	}
	return p
}

// tree returns the parts as a resource with a path.
func (p parts) tree() parts {
	if p.kind == perm.KindHTTP || p.kind == perm.KindHTTPS {
		return p
	}
	return p.of(perm.KindFile)
}

func (p parts) resource() (perm.Resource, error) {
	if p.kind == perm.KindExec && strings.HasPrefix(p.authority, "/") {
		return p.kind.Resource("", strings.Split(p.authority[1:], "/")...)
	}
	authority := p.authority
	if p.port != "" {
		authority += ":" + p.port
	}
	var segments []string
	if p.path != "" {
		segments = strings.Split(p.path, "/")
	}
	r, err := p.kind.Resource(authority, segments...)
	if err == nil && p.kind == perm.KindDB && p.statement != "" {
		return r.WithStatement(p.statement)
	}
	return r, err
}

// setPart sets one part of the facts of a resource, and all others to what
// follows from it. It reports whether there is such a resource.
func setPart(facts map[string]any, steps []string, v any) bool {
	text, isText := v.(string)
	if n, ok := v.(float64); ok && steps[0] == "port" {
		text, isText = strconv.Itoa(int(n)), true
	}
	if steps[0] == "argv" {
		return setArgv(facts, steps[1:], v)
	}
	if list, ok := v.([]any); ok && steps[0] == "segments" {
		return setResource(facts, "path", joined(list))
	}
	if !isText {
		return false
	}
	if steps[0] != "segments" || len(steps) != 2 {
		return setResource(facts, steps[0], text)
	}
	p := partsOf(facts).tree()
	names := strings.Split(p.path, "/")
	i, fixed := index(steps[1])
	if !fixed {
		return setResource(facts, "path", path.Join(text, p.path))
	}
	for len(names) <= i {
		names = append(names, "a")
	}
	names[i] = text
	if i == len(names)-1 && !strings.Contains(text, ".") {
		names = append(names, "a.txt")
	}
	return setResource(facts, "path", strings.Join(names, "/"))
}

func setArgv(facts map[string]any, steps []string, v any) bool {
	if facts["kind"] != string(perm.KindExec) && !setResource(facts, "kind", string(perm.KindExec)) {
		return false
	}
	if list, ok := v.([]any); ok && len(steps) == 0 {
		facts["argv"] = list
		return true
	}
	text, ok := v.(string)
	if !ok || len(steps) == 0 {
		return false
	}
	argv, _ := facts["argv"].([]any)
	if argv == nil {
		argv = []any{facts["program"]}
	}
	i, fixed := index(steps[0])
	if !fixed {
		i = len(argv)
	}
	for len(argv) <= i {
		argv = append(argv, "x")
	}
	argv[i] = text
	facts["argv"] = argv
	return true
}

// setResource replaces the facts of a resource by those of another one with a
// part of this text.
func setResource(facts map[string]any, part, text string) bool {
	p, argv := partsOf(facts), facts["argv"]
	switch part {
	case "text":
		r, err := perm.ParseResource(text)
		return err == nil && replaceFacts(facts, r, nil)
	case "kind", "scheme":
		p = p.of(perm.Kind(text))
	case "root":
		p = p.of(perm.KindFile)
		p.authority = text
	case "host":
		if p.kind != perm.KindHTTP {
			p = p.of(perm.KindHTTPS)
		}
		p.authority = text
	case "port":
		if p.kind != perm.KindHTTP {
			p = p.of(perm.KindHTTPS)
		}
		p.port = text
	case "path":
		p = p.tree()
		p.path = text
	case "name":
		if p.kind == perm.KindTool || p.kind == perm.KindSecret {
			p.authority = text
			break
		}
		p = p.tree()
		p.path = path.Join(path.Dir(p.path), text)
	case "ext":
		p = p.tree()
		p.path = strings.TrimSuffix(p.path, path.Ext(p.path)) + text
		if path.Base(p.path) == text || p.path == "" {
			p.path = path.Join(path.Dir(p.path), "a"+text)
		}
	case "program":
		p = p.of(perm.KindExec)
		p.authority = text
	case "database":
		p = p.of(perm.KindDB)
		p.authority = text
	case "table":
		p = p.of(perm.KindDB)
		p.path = text
	case "statement":
		p = p.of(perm.KindDB)
		p.statement = text
	case "server":
		p = p.of(perm.KindMCP)
		p.authority = text
	case "tool":
		if p.kind != perm.KindTool {
			p = p.of(perm.KindMCP)
			p.path = text
		} else {
			p.authority = text
		}
	}
	r, err := p.resource()
	return err == nil && replaceFacts(facts, r, argv)
}

func replaceFacts(facts map[string]any, r perm.Resource, argv any) bool {
	text, err := json.Marshal(r.Facts())
	if err != nil {
		return false
	}
	clear(facts)
	if argv != nil && r.Kind() == perm.KindExec {
		facts["argv"] = argv
	}
	return json.Unmarshal(text, &facts) == nil
}

// actionsOf returns the actions that a call can perform on a resource.
func actionsOf(kind string) []string {
	switch perm.Kind(kind) {
	case perm.KindFile:
		return []string{"read", "write", "delete", "list"}
	case perm.KindHTTP, perm.KindHTTPS:
		return []string{"connect"}
	case perm.KindExec:
		return []string{"execute"}
	case perm.KindDB:
		return []string{"read", "write", "delete"}
	case perm.KindSecret:
		return []string{"use"}
	case perm.KindTool:
		return []string{"call"}
	default:
		return []string{"call", "read", "ask"}
	}
}

// kindsOf returns the kinds of resource that an action needs.
func kindsOf(action string) (kinds []string) {
	for _, k := range []perm.Kind{perm.KindFile, perm.KindHTTPS, perm.KindExec, perm.KindDB, perm.KindSecret, perm.KindTool, perm.KindMCP} {
		for _, a := range actionsOf(string(k)) {
			if a == action {
				kinds = append(kinds, string(k))
			}
		}
	}
	return kinds
}
