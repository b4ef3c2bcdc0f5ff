package learn

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/remit-dev/remit/perm"
)

// helpers are the names of the rules about one command, for tools in the
// sandbox and for others.
var helpers = map[bool]string{true: "known_command", false: "known_outside_sandbox"}

// scripts adds the rules about scripts: one for the whole, and one for each
// program or group of programs.
func (p *Policy) scripts(e *Evidence, o Options) {
	for _, confined := range []bool{true, false} {
		pick := func(list []sample) []sample {
			return slices.DeleteFunc(slices.Clone(list), func(s sample) bool {
				return s.Call.Script == nil || s.Access.Action != perm.Execute || (s.Tool.Confinement == "sandbox") != confined
			})
		}
		good := pick(e.good)
		if len(good) == 0 {
			continue
		}
		c := learnCommands(good, pick(e.bad), confined, o)
		for _, s := range c.left {
			p.leave(&p.LeftOut, "some of the script is unusual", s)
		}
		if len(c.covered) == 0 {
			continue
		}
		p.commands = append(p.commands, c)
		p.add(Rule{
			Reason: "run commands that are known", test: c.covered[0].Request, commands: helpers[confined] + "(command)",
			body: append(common(c.covered), "known_script", "every command in input.call.script.commands {", "\t"+helpers[confined]+"(command)", "}"),
		}, c.covered)
		for _, r := range c.rules(e) {
			r.head = helpers[confined] + "(command)"
			r.test = commandTest(c, r.first)
			p.add(r.Rule, r.from)
		}
	}
}

type commandRule struct {
	Rule
	first use
	from  []sample
}

// rules returns the rules about programs.
func (c *commands) rules(e *Evidence) (list []commandRule) {
	plain, texts, versions := []string{}, []string{}, []string{}
	byCall := map[string]sample{}
	for _, s := range slices.Concat(c.covered, c.left) {
		byCall[s.Call.ID] = s
	}
	add := func(reason string, names []string, covers func(use) bool, body ...string) {
		r := commandRule{Rule: Rule{Reason: reason, body: body}}
		for _, name := range names {
			for _, u := range c.programs[name].uses {
				if covers(u) && c.programs[name].covers(u, c.vocabulary) {
					if r.from == nil {
						r.first = u
					}
					r.from = append(r.from, byCall[u.call])
				}
			}
		}
		if r.from != nil {
			list = append(list, r)
		}
	}
	isVersion := use.isVersion
	other := func(u use) bool { return !isVersion(u) }
	for _, name := range slices.Sorted(maps.Keys(c.programs)) {
		p := c.programs[name]
		if slices.ContainsFunc(p.uses, func(u use) bool { return isVersion(u) && p.covers(u, c.vocabulary) }) {
			versions = append(versions, name)
		}
		switch is := "command.program == " + quote(name); {
		case !slices.ContainsFunc(p.uses, func(u use) bool { return other(u) && p.covers(u, c.vocabulary) }):
		case p.form == whole:
			add(name+" with complete arguments that calls named", []string{name}, other, is, "command.args in "+lists(p.lists))
		case p.bySub || p.form == fromFile && len(p.subs) > 0:
			c.subRules(p, add)
		case p.form == free && slices.Contains(printers, name):
			add(name+" prints what it gets", []string{name}, other, is, "every arg in command.args {", "\tprinted(arg)", "}")
		case p.form == free && p.texts:
			texts = append(texts, name)
		case p.form == free:
			plain = append(plain, name)
		default:
			c.optionRule(p, add)
		}
	}
	if len(plain) > 0 {
		add("programs with names and paths of the workspace", plain, other, oneOf("command.program", plain), "every arg in command.args {", "\tplain(arg)", "}")
	}
	if len(texts) > 0 {
		add("programs with texts, such as patterns", texts, other, oneOf("command.program", texts), "every arg in command.args {", "\ttextual(arg)", "}")
	}
	if len(versions) > 0 {
		var args [][]string
		for _, o := range versionOptions {
			args = append(args, []string{o})
		}
		add("programs tell their version", versions, isVersion, oneOf("command.program", versions), "command.args in "+listSet(args))
	}
	return list
}

type addRule func(reason string, names []string, covers func(use) bool, body ...string)

// subRules adds one rule for each length of the prefixes of a program.
func (c *commands) subRules(p *program, add addRule) {
	check := "plain(arg)"
	if p.texts {
		check = "textual(arg)"
	}
	lengths := map[int][][]string{}
	for _, prefix := range p.subs {
		lengths[len(prefix)] = append(lengths[len(prefix)], prefix)
	}
	for _, n := range slices.Sorted(maps.Keys(lengths)) {
		condition := fmt.Sprintf("array.slice(command.args, 0, %d) in %s", n, listSet(lengths[n]))
		if n == 1 {
			var names []string
			for _, l := range lengths[n] {
				names = append(names, l[0])
			}
			condition = oneOf("command.args[0]", names)
		}
		is := func(u use) bool {
			return slices.ContainsFunc(lengths[n], func(l []string) bool { return len(u.args) >= n && slices.Equal(u.args[:n], l) })
		}
		add(p.name+" with what it does", []string{p.name}, is, "command.program == "+quote(p.name), condition,
			fmt.Sprintf("every arg in array.slice(command.args, %d, count(command.args)) {", n), "\t"+check, "}")
	}
	if p.form == fromFile {
		c.optionRule(p, add)
	}
}

// optionRule adds the rule of a program whose options are known ones.
func (c *commands) optionRule(p *program, add addRule) {
	slices.Sort(p.options)
	body := []string{
		"command.program == " + quote(p.name), "every arg in command.args {", "\tplain(arg)", "}",
		"every arg in command.args {", "\toption_in(arg, " + set(p.options) + ")", "}",
	}
	does := " with options that calls named"
	if p.form == fromFile {
		body = append(body, "some file in command.args", `not startswith(file, "-")`)
		does = " runs a file of the workspace"
	}
	add(p.name+does, []string{p.name}, func(u use) bool { return !u.isVersion() && (len(u.args) == 0 || u.args[0] != "-m") }, body...)
}

// commandTest returns an input of a test with one command.
func commandTest(c *commands, u use) perm.Request {
	r := c.covered[0].Request
	script := perm.ScriptFacts{Commands: []perm.CommandFacts{u.CommandFacts}, Redirects: []perm.RedirectFacts{}}
	r.Call.Script = &script
	text, _ := json.Marshal(map[string]string{"command": *u.Program}) // texts always marshal; the rules read no more of it
	r.Call.Args = text
	return r
}

func lists(of map[string][]string) string {
	var all [][]string
	for _, key := range slices.Sorted(maps.Keys(of)) {
		all = append(all, of[key])
	}
	return listSet(all)
}

func listSet(all [][]string) string {
	var parts []string
	for _, l := range all {
		parts = append(parts, keyOfRego(l))
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, ", ") + "}"
}

func keyOfRego(words []string) string {
	var parts []string
	for _, w := range words {
		parts = append(parts, quote(w))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
