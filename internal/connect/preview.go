package connect

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// difference returns the diff of a file, without secret values.
func difference(name string, before, after []byte, hide *strings.Replacer) string {
	text := diff.Diff(name, []byte(hide.Replace(string(before))), name, []byte(hide.Replace(string(after))))
	var out strings.Builder
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "diff ") {
			continue
		}
		out.WriteString(cut(line))
	}
	return out.String()
}

// cut shortens a long line: some clients write everything on one line.
func cut(line string) string {
	const longest = 400
	if len(line) <= longest {
		return line
	}
	return strings.ToValidUTF8(line[:longest], "") + " … \n"
}

// secretsOf hides the values of environments and headers in all files.
func secretsOf(steps []*step, edits []*gatewayEdit) *strings.Replacer {
	var values []string
	add := func(f format, l layout, texts ...[]byte) {
		for _, text := range texts {
			_, body, err := opened(text)
			if err != nil || blank(body) {
				continue
			}
			tables, _ := f.tables(body, l) // unreadable content is not shown either
			for _, t := range tables {
				for _, server := range t.servers {
					values = append(values, server.entry.secrets()...)
				}
			}
		}
	}
	for _, s := range steps {
		add(s.source.format, s.source.layout, s.held.content(), s.after)
		values = append(values, s.secrets()...)
	}
	for _, e := range edits {
		add(jsonFormat{}, layout{key: "mcpServers"}, e.before(), e.after)
	}
	// Longest first: one value can contain another.
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, v := range slices.Compact(values) {
		quoted := string(marshal(v))
		pairs = append(pairs, quoted, `"(hidden)"`, "'"+v+"'", "'(hidden)'")
		if len(v) >= 8 {
			pairs = append(pairs, quoted[1:len(quoted)-1], "(hidden)", v, "(hidden)")
		}
	}
	return strings.NewReplacer(pairs...)
}

// secrets returns the values of variables and headers anywhere in a settings
// file.
func (s *step) secrets() (values []string) {
	if len(s.source.hooks) == 0 {
		return nil
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, is := range v {
				walk(is)
			}
		case map[string]any:
			values = append(values, entry{{"env", marshal(v["env"])}, {"headers", marshal(v["headers"])}}.secrets()...)
			for _, is := range v {
				walk(is)
			}
		}
	}
	_, body, err := opened(s.held.content())
	if err != nil || blank(body) {
		return nil
	}
	v, _ := jsonFormat{}.values(body) // unreadable content is not shown either
	walk(map[string]any(v))
	return values
}

// secrets returns the values of an entry that can be secret. References to
// variables are not.
func (e entry) secrets() (values []string) {
	for _, name := range []string{"env", "environment", "headers", "http_headers"} {
		raw, _ := e.get(name)
		var m map[string]json.RawMessage
		_ = json.Unmarshal(raw, &m)
		for _, raw := range m {
			text, ok := decoded(raw).(string)
			if ok && text != "" && brace.ReplaceAllString(dollar.ReplaceAllString(text, ""), "") != "" {
				values = append(values, text)
			}
		}
	}
	return values
}
