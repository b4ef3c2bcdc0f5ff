package learn

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/remit-dev/remit/perm"
)

// use is one command of the script of a call.
type use struct {
	perm.CommandFacts
	args []string
	all  bool // no argument is known only at run time
	call string
}

// isVersion reports whether the program only tells its version or its usage.
func (u use) isVersion() bool {
	return u.all && len(u.args) == 1 && slices.Contains(versionOptions, u.args[0])
}

// program is what the calls of one program have in common.
type program struct {
	name    string
	form    form
	uses    []use
	subs    map[string][]string // prefixes of the arguments that select what it does, by their JSON
	bySub   bool
	texts   bool                // arguments can be texts
	options []string            // known ones, for the forms with them
	lists   map[string][]string // complete arguments, for the form whole
}

// commands is what calls of one kind of tool ran.
type commands struct {
	tools    []string
	confined bool
	programs map[string]*program
	vocabulary
	sets    []string // assignments
	covered []sample
	left    []sample
}

// vocabulary lists what a rule accepts in scripts beside plain words.
type vocabulary struct {
	constants []string // arguments and redirects that several calls have
	folders   []string // folders outside the workspace, with a slash at the end
}

// has reports whether a word is plain or known.
func (v vocabulary) has(word string) bool {
	return plain(word) || slices.Contains(v.constants, word) || slices.ContainsFunc(v.folders, func(f string) bool { return inFolder(word, f) })
}

func inFolder(word, folder string) bool {
	return strings.HasPrefix(word, folder) && scratchWord.MatchString(word) && !slices.Contains(strings.Split(word, "/"), "..")
}

// learnCommands learns from the scripts of samples of one kind of tool.
func learnCommands(samples, bad []sample, confined bool, o Options) *commands {
	c := &commands{confined: confined, programs: map[string]*program{}}
	for _, s := range samples {
		c.collect(s)
	}
	c.findConstants(samples, o)
	for _, p := range c.programs {
		p.learn(c.vocabulary, o)
	}
	for _, s := range bad {
		c.exclude(s)
	}
	for _, s := range samples {
		if c.covers(s.Request) {
			c.covered = append(c.covered, s)
		} else {
			c.left = append(c.left, s)
		}
	}
	return c
}

func (c *commands) collect(s sample) {
	if !slices.Contains(c.tools, s.Tool.Name) {
		c.tools = append(c.tools, s.Tool.Name)
	}
	for _, facts := range s.Call.Script.Commands {
		if facts.Program == nil {
			continue
		}
		p := c.programs[*facts.Program]
		if p == nil {
			p = &program{name: *facts.Program, form: formOf(*facts.Program, c.confined), subs: map[string][]string{}, lists: map[string][]string{}}
			c.programs[*facts.Program] = p
		}
		args, all := words(facts)
		p.uses = append(p.uses, use{facts, args, all, s.Call.ID})
	}
}

// findConstants finds the words that several calls have and that are not plain.
func (c *commands) findConstants(samples []sample, o Options) {
	calls := map[string]map[string]bool{}
	note := func(word, call string) {
		if plainWord.MatchString(word) && !near(word) && !secretWord.MatchString(word) && !strings.Contains(word, "://") {
			if calls[word] == nil {
				calls[word] = map[string]bool{}
			}
			calls[word][call] = true
		}
	}
	sets := map[string]bool{}
	for _, s := range samples {
		for _, cmd := range s.Call.Script.Commands {
			args, _ := words(cmd)
			for _, arg := range args {
				note(arg, s.Call.ID)
			}
		}
		for _, r := range s.Call.Script.Redirects {
			if r.Path != nil {
				note(*r.Path, s.Call.ID)
			}
		}
		for _, one := range assignments(scriptText(s.Request)) {
			if _, value, _ := strings.Cut(one, "="); value != "" && plain(value) {
				sets[one] = true
			}
		}
	}
	for word, in := range calls {
		if len(in) >= o.Repeated {
			c.constants = append(c.constants, word)
		}
	}
	slices.Sort(c.constants)
	if c.confined {
		c.findFolders(slices.Collect(maps.Keys(calls)), o)
	}
	c.sets = slices.Sorted(maps.Keys(sets))
}

// findFolders finds folders with enough used paths, the widest first.
func (c *commands) findFolders(words []string, o Options) {
	below := map[string]int{}
	for _, w := range words {
		if parts := strings.SplitAfterN(w, "/", 3); len(parts) == 3 && parts[0] == "/" && inFolder(w, "/"+parts[1]) {
			below["/"+parts[1]]++
		}
	}
	for folder, n := range below {
		if n >= o.Files && folder == scratchFolder {
			c.folders = append(c.folders, folder)
		}
	}
	c.constants = slices.DeleteFunc(c.constants, func(w string) bool {
		return slices.ContainsFunc(c.folders, func(f string) bool { return inFolder(w, f) })
	})
}

// scratchFolder is the only folder outside the workspace that a rule covers as a
// whole: the sandbox has its own.
const scratchFolder = "/tmp/"

// learn finds what the uses of a program have in common.
func (p *program) learn(known vocabulary, o Options) {
	first, with := 0, 0
	texts := map[string]bool{}
	for _, u := range p.uses {
		if len(u.args) > 0 && !u.isVersion() {
			with++
			if subcommand.MatchString(u.args[0]) {
				first++
			}
		}
		for _, a := range u.args {
			if !plainWord.MatchString(a) && near(a) {
				texts[a] = true
			}
		}
	}
	p.texts = p.form == free && (len(texts) >= o.Texts || slices.Contains(printers, p.name))
	p.bySub = p.form == free && first > 0 && first*4 >= with*3 && !slices.Contains(wordless, p.name)
	if p.form == whole {
		p.learnLists(o)
		return
	}
	for _, u := range p.uses {
		p.learnUse(u, known)
	}
}

// learnLists keeps the complete arguments that several calls have.
func (p *program) learnLists(o Options) {
	calls := map[string]map[string]bool{}
	for _, u := range p.uses {
		if !u.all || slices.ContainsFunc(u.args, func(a string) bool { return !near(a) }) {
			continue
		}
		key := keyOf(u.args)
		if calls[key] == nil {
			calls[key] = map[string]bool{}
		}
		if calls[key][u.call] = true; len(calls[key]) >= o.Repeated {
			p.lists[key] = u.args
		}
	}
}

func (p *program) learnUse(u use, known vocabulary) {
	if u.isVersion() {
		return
	}
	prefix := p.prefix(u.args)
	if prefix != nil && (p.bySub || p.form == fromFile) {
		if p.argumentsOK(u, len(prefix), known) {
			p.subs[keyOf(prefix)] = prefix
		}
		return
	}
	if p.form != withOptions && p.form != fromFile {
		return
	}
	var options []string
	for _, a := range u.args {
		if !strings.HasPrefix(a, "-") {
			continue
		}
		if name, _, _ := strings.Cut(a, "="); slices.Contains(codeOptions, name) || p.name == "make" && name == "-f" || !near(a) && !known.has(a) {
			return
		}
		options = append(options, a)
	}
	for _, one := range options {
		if !slices.Contains(p.options, one) {
			p.options = append(p.options, one)
		}
	}
}

// prefix returns the arguments up to the one that selects what the program
// does. Nil: there is none.
func (p *program) prefix(args []string) []string {
	if p.form == fromFile {
		if len(args) > 1 && args[0] == "-m" && shortName.MatchString(args[1]) {
			return args[:2]
		}
		return nil
	}
	if !p.bySub {
		return nil
	}
	for i, a := range args {
		if i > 3 {
			return nil
		}
		if !strings.HasPrefix(a, "-") {
			if subcommand.MatchString(a) || i == 0 && plain(a) {
				return args[:i+1]
			}
			return nil
		}
		if !plain(a) {
			return nil
		}
	}
	return nil
}

// argumentsOK reports whether the arguments after the first n are of the form
// that the policy permits.
func (p *program) argumentsOK(u use, n int, known vocabulary) bool {
	if !u.all && !slices.Contains(printers, p.name) {
		return false
	}
	for _, a := range u.args[min(n, len(u.args)):] {
		if !known.has(a) && (!p.texts || !near(a)) {
			return false
		}
	}
	return true
}

// covers reports whether the policy knows the command.
func (p *program) covers(u use, known vocabulary) bool {
	if u.isVersion() {
		return p.form != whole
	}
	if p.form == whole {
		_, ok := p.lists[keyOf(u.args)]
		return ok && u.all
	}
	for _, prefix := range p.subs {
		if len(u.args) >= len(prefix) && slices.Equal(u.args[:len(prefix)], prefix) {
			return p.argumentsOK(u, len(prefix), known)
		}
	}
	if p.bySub || !p.argumentsOK(u, 0, known) {
		return false
	}
	file := false
	for _, a := range u.args {
		isOption := strings.HasPrefix(a, "-")
		file = file || !isOption
		if isOption && p.form != free && !slices.Contains(p.options, a) {
			return false
		}
	}
	return file || p.form != fromFile
}

// covers reports whether the policy knows all of a script.
func (c *commands) covers(r perm.Request) bool {
	s := r.Call.Script
	if s == nil || s.Error != "" || len(s.Commands) == 0 || scriptText(r) == "" {
		return false
	}
	for _, one := range s.Commands {
		if one.Program == nil || c.programs[*one.Program] == nil {
			return false
		}
		args, all := words(one)
		if !c.programs[*one.Program].covers(use{one, args, all, ""}, c.vocabulary) {
			return false
		}
	}
	for _, to := range s.Redirects {
		if to.Path == nil || !c.has(*to.Path) {
			return false
		}
	}
	for _, one := range assignments(scriptText(r)) {
		if !slices.Contains(c.sets, one) {
			return false
		}
	}
	return true
}

// exclude takes out the rarest command of a script that was denied, or that a
// person was asked about, until the policy does not know it.
func (c *commands) exclude(s sample) {
	for c.covers(s.Request) {
		rarest := slices.MinFunc(s.Call.Script.Commands, func(x, y perm.CommandFacts) int {
			return cmp.Compare(len(c.programs[*x.Program].uses), len(c.programs[*y.Program].uses))
		})
		p := c.programs[*rarest.Program]
		args, _ := words(rarest)
		found := false
		for key, prefix := range p.subs {
			if len(args) >= len(prefix) && slices.Equal(args[:len(prefix)], prefix) {
				delete(p.subs, key)
				found = true
			}
		}
		if !found {
			delete(c.programs, p.name)
		}
	}
}

// scriptText returns the text of a script, which only the arguments have.
func scriptText(r perm.Request) string {
	var args struct {
		Command string `json:"command"`
		Script  string `json:"script"`
	}
	_ = json.Unmarshal(r.Call.Args, &args)
	return cmp.Or(args.Command, args.Script)
}

func keyOf(words []string) string {
	text, _ := json.Marshal(words) // texts always marshal
	return string(text)
}
