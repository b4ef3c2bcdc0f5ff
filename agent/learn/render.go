package learn

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// quote returns a text as Rego and JSON write it.
func quote(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // texts always encode
	return strings.TrimSuffix(b.String(), "\n")
}

// comment makes a text safe for a comment: it stays on one line.
func comment(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}

func set(values []string) string {
	if len(values) == 0 {
		return "set()"
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	var parts []string
	for _, v := range slices.Compact(sorted) {
		parts = append(parts, quote(v))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// oneOf is a condition that a value is one of some.
func oneOf(path string, values []string) string {
	if len(values) == 1 {
		return path + " == " + quote(values[0])
	}
	return path + " in " + set(values)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

const header = `# A template that was learned from recorded calls. Review each rule, and delete what
# an agent does not need. Nothing applies this policy by itself.
#
# It asks a person about each access that no rule knows. Load it beside a pack: all
# rules of the pack count too, such as those that keep secrets out of reach.
package remit

`

const allows = `allow contains reason if {
	input.purpose in {"run", "apply", "revert"}
	some reason in learned
}

ask contains "no recorded call that went well was like this one" if {
	input.purpose in {"run", "apply"}
	count(learned) == 0
}

`

const asksAll = `ask contains "no recorded call that went well was like this one" if input.purpose in {"run", "apply"}

`

const masks = `# Programs in the sandbox do not see these, also if no pack says so.
mask contains sprintf("file://*/**/%s/**", [name]) if {
	some name in {".env", ".ssh", ".aws", ".gnupg", ".kube", ".netrc", ".npmrc", ".pypirc", ".pgpass", ".git-credentials"}
}
`

const patterns = `# It names nothing outside the workspace, no settings of agents, editors and git, no
# usual secret, and nothing that a host serves.
near(text) if {
	not regex.match(` + "`" + outsidePattern + "`" + `, text)
	not regex.match(` + "`" + guardPattern + "`" + `, text)
	not regex.match(` + "`" + secretPattern + "`" + `, text)
	not regex.match(` + "`" + fetchedPattern + "`" + `, text)
}
`

const folderHelper = `in_folder(folders) if {
	some folder in folders
	folder != ""
	startswith(file_path, concat("", [folder, "/"]))
}

in_folder(folders) if {
	"" in folders
	not contains(file_path, "/")
}
`

// usual are the paths that a wide rule covers.
func usual() string {
	return "# Other programs run these files, so wide rules let them be read only.\nstarters := " + set(starters) + `

usual_path if {
	near(file_path)
	input.access.action in {"read", "list"}
}

usual_path if {
	near(file_path)
	not regex.match(` + "`" + dotPattern + "`" + `, file_path)
	not object.get(input.access.resource, "name", "") in starters
}
`
}

const scriptHelper = `script_text := object.get(input.call.args, "command", object.get(input.call.args, "script", ""))

# The files that a script opens and the variables that it sets are known.
known_script if {
	count(input.call.script.commands) > 0
	not input.call.script.error
	is_string(script_text)
	script_text != ""
	every redirect in input.call.script.redirects {
		plain(redirect.path)
	}
	known_assignments
}

# A name, an option, or a path of the workspace.
plain(word) if {
	is_string(word)
	regex.match(` + "`" + plainPattern + "`" + `, word)
	near(word)
}
`

// uses reports whether a rule of the policy has a text.
func (p *Policy) uses(text string) bool {
	return slices.ContainsFunc(p.Rules, func(r Rule) bool {
		return slices.ContainsFunc(r.body, func(l string) bool { return strings.Contains(l, text) })
	})
}

// known returns the words and assignments that the rules about scripts permit.
func (p *Policy) known() (constants, folders, sets []string) {
	for _, c := range p.commands {
		constants = append(constants, c.constants...)
		folders = append(folders, c.folders...)
		sets = append(sets, c.sets...)
	}
	return constants, folders, sets
}

// vocabulary returns the sets of words that scripts can have.
func (p *Policy) vocabulary() string {
	constants, folders, sets := p.known()
	var b strings.Builder
	if len(constants) > 0 {
		fmt.Fprintf(&b, "\n# Other words that several calls had.\nconstants := %s\n\nplain(word) if word in constants\n", set(constants))
	}
	if len(folders) > 0 {
		fmt.Fprintf(&b, "\n%sfolders := %s\n", folderWords, set(folders))
	}
	if len(sets) == 0 {
		b.WriteString("\nknown_assignments if not regex.match(`" + setsPattern + "`, script_text)\n")
		return b.String()
	}
	fmt.Fprintf(&b, "\nassignments := %s\n\n%s", set(sets), assignmentHelper)
	return b.String()
}

const assignmentHelper = `known_assignments if {
	every found in regex.find_all_string_submatch_n(` + "`" + setsPattern + "`" + `, script_text, -1) {
		found[1] in assignments
	}
}
`

const folderWords = `# A scratch folder of the sandbox.
plain(word) if {
	is_string(word)
	some folder in folders
	startswith(word, folder)
	regex.match(` + "`" + scratchPattern + "`" + `, word)
	not ".." in split(word, "/")
}

`

// text returns a rule with its comment and an empty line after it.
func (r Rule) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s, such as %s.\n", count(r.Count, "call"), comment(strings.Join(r.Calls, ", ")))
	if r.head == "" {
		fmt.Fprintf(&b, "learned contains %s if {\n", quote(r.Reason))
	} else {
		fmt.Fprintf(&b, "# %s.\n%s if {\n", comment(r.Reason), r.head)
	}
	for _, line := range r.body {
		b.WriteString("\t" + line + "\n")
	}
	b.WriteString("}\n\n")
	return b.String()
}

// render sets the texts of the policy.
func (p *Policy) render() {
	var b strings.Builder
	b.WriteString(header)
	for _, r := range p.Rules {
		b.WriteString(r.text())
	}
	if len(p.Rules) == 0 {
		b.WriteString("# No call was found to learn from.\n" + asksAll)
	} else {
		b.WriteString(allows)
	}
	b.WriteString(masks)
	script, paths := p.uses("known_script"), p.uses("usual_path")
	if script || paths {
		b.WriteString("\n" + patterns)
	}
	if paths || p.uses("file_path") {
		b.WriteString("\n# The root itself has no path.\nfile_path := object.get(input.access.resource, \"path\", \"\")\n")
	}
	if p.uses("in_folder(") {
		b.WriteString("\n" + folderHelper)
	}
	if paths {
		b.WriteString("\n" + usual())
	}
	if script {
		b.WriteString("\n" + scriptHelper + p.vocabulary())
	}
	if p.uses("textual(") || p.uses("printed(") {
		b.WriteString("\ntextual(word) if plain(word)\n\ntextual(word) if {\n\tis_string(word)\n\tnear(word)\n}\n")
	}
	if p.uses("printed(") {
		b.WriteString("\n# Known only at run time.\nprinted(word) if is_null(word)\n\nprinted(word) if textual(word)\n")
	}
	if p.uses("option_in(") {
		b.WriteString("\noption_in(word, options) if word in options\n\noption_in(word, _) if not startswith(word, \"-\")\n")
	}
	writeLists(&b, p)
	p.Rego, p.Test = b.String(), p.tests()
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// maxComments bounds the lines of a list in the policy. The report has all.
const maxComments = 20

func writeLists(b *strings.Builder, p *Policy) {
	for _, list := range []struct {
		title string
		what  []LeftOut
	}{{"Went well, and is not allowed:", p.LeftOut}, {"Was denied, or a person was asked:", p.Refused}} {
		if len(list.what) == 0 {
			continue
		}
		fmt.Fprintf(b, "\n# %s\n", list.title)
		for _, l := range list.what[:min(len(list.what), maxComments)] {
			fmt.Fprintf(b, "# - %s, %s; %s\n", count(l.Count, "call"), comment(l.What), comment(l.Why))
		}
		if more := len(list.what) - maxComments; more > 0 {
			fmt.Fprintf(b, "# - and %d more\n", more)
		}
	}
}
