package process

import (
	"encoding/json"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
)

// scriptOf tells what a call of shell_run would run.
func scriptOf(raw json.RawMessage) *perm.ScriptFacts {
	var in shellIn
	if err := canon.Decode(raw, &in); err != nil {
		return unread(err)
	}
	return ParseScript(in.Script)
}

// ParseScript implements builtin.ParseScript, which documents it.
func ParseScript(script string) *perm.ScriptFacts {
	r := scriptReader{facts: perm.ScriptFacts{Commands: []perm.CommandFacts{}, Redirects: []perm.RedirectFacts{}}}
	if err := r.read(script, 0); err != nil {
		return unread(err)
	}
	return &r.facts
}

func unread(err error) *perm.ScriptFacts {
	return &perm.ScriptFacts{Commands: []perm.CommandFacts{}, Redirects: []perm.RedirectFacts{}, Dynamic: true, Error: err.Error()}
}

// scriptReader collects what a script runs.
type scriptReader struct{ facts perm.ScriptFacts }

// deepest is how far scripts inside of scripts are followed.
const deepest = 8

// read reads a script, and those that it gives to other shells. The grammar is the
// widest one that sh may have.
func (r *scriptReader) read(script string, depth int) error {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil {
		return err
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			r.command(n.Args, depth)
		case *syntax.Redirect:
			r.redirect(n)
		case *syntax.ProcSubst, *syntax.CmdSubst, *syntax.CoprocClause:
			r.facts.Dynamic = true
		}
		return true
	})
	return nil
}

func (r *scriptReader) command(words []*syntax.Word, depth int) {
	if len(words) == 0 {
		return // only assigns
	}
	c := perm.CommandFacts{Program: r.known(words[0]), Args: make([]*string, 0, len(words)-1)}
	for _, w := range words[1:] {
		c.Args = append(c.Args, r.known(w))
	}
	r.facts.Commands = append(r.facts.Commands, c)
	r.inner(c, depth)
}

// inner follows a command that runs what it is told in its arguments.
func (r *scriptReader) inner(c perm.CommandFacts, depth int) {
	if c.Program == nil {
		return
	}
	switch name := (*c.Program)[strings.LastIndexByte(*c.Program, '/')+1:]; name {
	case "eval", ".", "source", "xargs", "find", "env", "exec", "command", "builtin", "nohup", "time", "timeout", "nice", "setsid",
		"sudo", "trap", "parallel", "watch", "python", "python3", "perl", "ruby", "node", "awk", "make", "git", "ssh":
		r.facts.Dynamic = true // what it runs stands in a text of another kind, or comes from elsewhere
	case "sh", "bash", "dash", "ash", "ksh", "zsh":
		for i, a := range c.Args {
			if a != nil && *a == "-c" && i+1 < len(c.Args) && c.Args[i+1] != nil && depth < deepest {
				if r.read(*c.Args[i+1], depth+1) == nil {
					return
				}
			}
		}
		r.facts.Dynamic = true
	}
}

func (r *scriptReader) redirect(n *syntax.Redirect) {
	switch n.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc, syntax.DplIn:
		return // no file
	default:
		path := r.known(n.Word)
		if n.Op == syntax.DplOut && path != nil && descriptor.MatchString(*path) {
			return
		}
		r.facts.Redirects = append(r.facts.Redirects, perm.RedirectFacts{Op: n.Op.String(), Path: path})
	}
}

// descriptor matches the word after >& if the redirection opens no file: a
// number, a moved number, or a dash that closes. Bash opens any other word as a
// file for writing.
var descriptor = regexp.MustCompile(`^([0-9]+-?|-)$`)

// known is a word's text where that is the same whenever it runs.
func (r *scriptReader) known(w *syntax.Word) *string {
	text, ok := literal(w.Parts, false)
	if !ok {
		r.facts.Dynamic = true
		return nil
	}
	return &text
}

// literal joins parts that no expansion touches.
func literal(parts []syntax.WordPart, quoted bool) (string, bool) {
	var b strings.Builder
	for i, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			text, ok := unescape(p.Value, quoted, i == 0)
			if !ok {
				return "", false
			}
			b.WriteString(text)
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			text, ok := literal(p.Parts, true)
			if p.Dollar || !ok {
				return "", false
			}
			b.WriteString(text)
		default:
			return "", false
		}
	}
	return b.String(), true
}

// unescape takes backslashes away. Outside of quotes a text with a pattern, a tilde in
// front or braces stands for something else.
func unescape(text string, quoted, first bool) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && i+1 < len(text):
			next := text[i+1]
			switch {
			case next == '\n': // goes on in the next line
			case quoted && !strings.ContainsRune("$`\"\\", rune(next)):
				b.WriteByte(c)
				b.WriteByte(next)
			default:
				b.WriteByte(next)
			}
			i++
		case !quoted && (strings.ContainsRune("*?[{", rune(c)) || c == '~' && first && i == 0):
			return "", false
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), true
}
