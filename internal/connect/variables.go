package connect

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// variableSyntax is the syntax of variables in a client's entries. The gateway
// has ${NAME} and ${NAME:-default}.
type variableSyntax int

const (
	literal variableSyntax = iota // no variables: all text is literal
	shell                         // same as the gateway
	editor                        // ${env:NAME}, ${workspaceFolder}, ${userHome}
	posix                         // $NAME, ${NAME} and ${NAME:-default}
	braces                        // {env:NAME}, {file:PATH}
)

// variableRewriter converts the variables of one table to the gateway's syntax.
type variableRewriter struct {
	variableSyntax
	client        string
	home, project string
	names         []string          // of the variables found
	texts         map[string]string // by name: the variable as the client has it
}

var (
	variable  = regexp.MustCompile(`\$\{[^}]*\}?`)
	shellName = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}$`)
	envName   = regexp.MustCompile(`^\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}$`)

	dollar     = regexp.MustCompile(`\$(?:\w+|\{[^}]*\}?)`)
	dollarName = regexp.MustCompile(`^\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\})$`)
	brace      = regexp.MustCompile(`\$\{[^}]*\}?|\{(?:env|file):[^}]*\}`)
	braceName  = regexp.MustCompile(`^\{env:([A-Za-z_][A-Za-z0-9_]*)\}$`)
)

// text converts one text. Why says what cannot be converted.
func (s *variableRewriter) text(text string) (out, why string) {
	pattern := variable
	switch s.variableSyntax {
	case posix:
		pattern = dollar
	case braces:
		pattern = brace
	case literal, shell, editor:
	}
	out = pattern.ReplaceAllStringFunc(text, func(found string) string {
		is, ok := s.variable(found)
		if !ok && why == "" {
			why = fmt.Sprintf("it uses %s, which only %s can replace", found, s.client)
			if s.variableSyntax == literal || s.variableSyntax == braces && found[0] == '$' {
				why = fmt.Sprintf("it has a text with %s in it, which %s passes on and the gateway would replace", found, s.client)
			}
		}
		return is
	})
	return out, why
}

func (s *variableRewriter) variable(found string) (string, bool) {
	switch s.variableSyntax {
	case literal: // no text is a variable
	case shell:
		if m := shellName.FindStringSubmatch(found); m != nil {
			s.met(m[1])
			return found, true
		}
	case editor:
		if m := envName.FindStringSubmatch(found); m != nil {
			s.met(m[1])
			return "${" + m[1] + "}", true
		}
		is := map[string]string{
			"userHome": s.home, "workspaceFolder": s.project, "workspaceFolderBasename": base(s.project),
			"pathSeparator": string(filepath.Separator), "/": string(filepath.Separator),
		}[strings.Trim(found, "${}")]
		return is, is != ""
	case posix:
		if m := dollarName.FindStringSubmatch(found); m != nil {
			name := cmp.Or(m[1], m[2])
			return "${" + name + m[3] + "}", s.passed(name, found)
		}
	case braces: // a missing variable is empty
		if m := braceName.FindStringSubmatch(found); m != nil {
			s.met(m[1])
			return "${" + m[1] + ":-}", true
		}
	}
	return "", false
}

// passed notes how the client writes a variable. It reports false if the client
// also writes it in another way, with another default.
func (s *variableRewriter) passed(name, found string) bool {
	s.met(name)
	if was, there := s.texts[name]; there {
		return was == found || !strings.Contains(was+found, ":-")
	}
	if s.texts == nil {
		s.texts = map[string]string{}
	}
	s.texts[name] = found
	return true
}

func (s *variableRewriter) met(name string) {
	if !slices.Contains(s.names, name) {
		s.names = append(s.names, name)
	}
}

func base(path string) string {
	if path == "" {
		return ""
	}
	return filepath.Base(path)
}
