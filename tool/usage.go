package tool

import "strings"

// maxUsage is how many bytes one tool may say in a system prompt.
const maxUsage = 8 << 10

// Usage returns what the tools say of how to use them, for a system prompt: one
// paragraph under the name of each that says something, in the order of the names.
// It is empty where none does.
func (r Registry) Usage() string {
	var all []string
	for _, name := range r.Names() {
		if t, ok := r.Get(name); ok && t.look().Usage != "" {
			all = append(all, "## "+name+"\n\n"+strings.TrimSpace(t.look().Usage))
		}
	}
	return strings.Join(all, "\n\n")
}
