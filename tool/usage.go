package tool

import "strings"

// maxUsage bounds the usage text of one tool, in bytes.
const maxUsage = 8 << 10

// Usage returns how to use the tools, for a system prompt. It has one paragraph
// under the name of each tool that has a Usage, in the order of the names. It
// is empty if no tool has one.
func (r Registry) Usage() string {
	var all []string
	for _, name := range r.Names() {
		if t, ok := r.Get(name); ok && t.look().Usage != "" {
			all = append(all, "## "+name+"\n\n"+strings.TrimSpace(t.look().Usage))
		}
	}
	return strings.Join(all, "\n\n")
}
