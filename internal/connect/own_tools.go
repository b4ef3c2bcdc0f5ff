package connect

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// HookState says whether a file leads the client's own tools to remit.
type HookState string

// The states of hooks.
const (
	HooksOn      HookState = "on"
	HooksOff     HookState = "off"
	HooksPartial HookState = "partial" // some events are missing
	HooksStale   HookState = "stale"   // they start a remit that is missing
	HooksOther   HookState = "other"   // they are not those of this remit: connect again
)

// wantsHooks reports whether the file is to lead own tools to remit.
func (s *step) wantsHooks(p Environment) bool {
	has := len(s.source.hooks) > 0 || s.source.content != ""
	return has && slices.Contains(p.Hooks, s.source.scope)
}

func (s *step) newRecord(c Client) *record {
	_, isTOML := s.source.format.(tomlFormat)
	return &record{
		Version: 1, Client: c.name, Path: s.source.path, TOML: isTOML, Key: s.source.layout.key, PerProject: s.source.layout.perProject,
	}
}

// addHooks adds the hooks to the text that the file gets.
func (s *step) addHooks(c Client) error {
	mark, body, err := opened(s.after)
	if err != nil {
		return err
	}
	if blank(body) {
		body = []byte(s.source.begin)
		if s.source.begin == "" {
			body = []byte("{}\n")
		}
	}
	if err := s.unknownHook(body); err != nil {
		return err
	}
	if s.new == nil {
		s.new = s.newRecord(c)
	}
	for _, h := range s.source.hooks {
		if body, err = h.added(body); err != nil {
			return err
		}
		s.new.Hooks = append(s.new.Hooks, h)
	}
	s.after = append(slices.Clone(mark), body...)
	return nil
}

// unknownHook refuses a file with a hook of remit that no record describes.
func (s *step) unknownHook(body []byte) error {
	v, err := jsonFormat{}.values(body)
	if err != nil {
		return err
	}
	for _, h := range s.source.hooks {
		list, _ := at(v, h.Path).([]any)
		for _, is := range list {
			if len(remitIn(is)) > 0 {
				return &FileError{Text: "it has a hook of remit for " + h.Path[len(h.Path)-1] + ", and no record of it: take it out"}
			}
		}
	}
	return nil
}

// replace plans the change of a file that remit writes whole.
func (s *step) replace(c Client, wanted bool) error {
	switch {
	case s.old != nil && !s.exact: // changed since: it stays
		s.new = s.old
	case !wanted, s.base != nil && string(s.base) == s.source.content:
	case s.base != nil:
		return &FileError{Text: "remit connect writes this file, and another one is there: move it away"}
	default:
		s.after, s.new = []byte(s.source.content), s.newRecord(c)
		s.new.Whole = true
	}
	return nil
}

// hookState tells what a text of the file does.
func (src source) hookState(text []byte) HookState {
	switch {
	case src.content != "":
		return src.wholeState(text)
	case len(src.hooks) == 0:
		return ""
	}
	_, body, err := opened(text)
	if err != nil || blank(body) || tooDeep(body) >= 0 {
		return HooksOff
	}
	v, err := jsonFormat{}.values(body)
	if err != nil {
		return HooksOff
	}
	same, some := 0, 0
	for _, h := range src.hooks {
		list, _ := at(v, h.Path).([]any)
		switch {
		case slices.ContainsFunc(list, func(is any) bool { return sameJSON(marshal(is), h.Value) }):
			same++
			some++
		case slices.ContainsFunc(list, func(is any) bool { return len(remitIn(is)) > 0 }):
			some++
		}
	}
	switch {
	case same == len(src.hooks):
		return HooksOn
	case some == 0:
		return HooksOff
	case stale(remitIn(v["hooks"])):
		return HooksStale
	case some < len(src.hooks):
		return HooksPartial
	default:
		return HooksOther
	}
}

var (
	pluginCommand = regexp.MustCompile(`(?m)^const remit = ("[^"\n]*")$`)
	shellCommand  = regexp.MustCompile(`^(?:sh -c '"\$0" hook [a-z-]+ \|\| .*; }' (.+)|(.+) hook [a-z-]+)$`)
	promptCommand = regexp.MustCompile("(?m)^!`'?(/[^'\n]*?)'? (?:undo|log|diff) ")
)

// wholeState tells what a file does that remit writes whole.
func (src source) wholeState(text []byte) HookState {
	paths := commandsIn(text)
	switch {
	case text == nil:
		return HooksOff
	case string(text) == src.content:
		return HooksOn
	case stale(paths):
		return HooksStale
	case len(paths) > 0:
		return HooksOther
	default:
		return HooksOff
	}
}

// commandsIn returns the remit that a file of remit's own starts.
func commandsIn(text []byte) []string {
	if m := pluginCommand.FindSubmatch(text); m != nil {
		path, _ := decoded(m[1]).(string)
		return []string{path}
	}
	if m := promptCommand.FindSubmatch(text); m != nil {
		return []string{string(m[1])}
	}
	return nil
}

// stale reports whether one of the commands is missing.
func stale(paths []string) bool {
	return slices.ContainsFunc(paths, func(path string) bool {
		_, err := os.Stat(path)
		return errors.Is(err, fs.ErrNotExist)
	})
}

// remitIn returns the paths of the remit commands that hooks in a value start.
func remitIn(v any) (paths []string) {
	switch v := v.(type) {
	case []any:
		for _, is := range v {
			paths = append(paths, remitIn(is)...)
		}
	case map[string]any:
		command, _ := v["command"].(string)
		args, _ := v["args"].([]any)
		if len(args) == 2 && args[0] == "hook" && isRemit(command) {
			return []string{command}
		}
		if m := shellCommand.FindStringSubmatch(command); m != nil {
			if path := unquoted(m[1] + m[2]); isRemit(path) {
				return []string{path}
			}
		}
		for _, is := range v {
			paths = append(paths, remitIn(is)...)
		}
	}
	return paths
}

func isRemit(command string) bool { return strings.Contains(filepath.Base(command), "remit") }

// unquoted returns the path of which shellWord made a word.
func unquoted(word string) string {
	for _, quote := range []string{"'", `"`} {
		if inner, ok := strings.CutPrefix(word, quote); ok {
			return strings.ReplaceAll(strings.TrimSuffix(inner, quote), `'\''`, "'")
		}
	}
	return word
}

// sameContent compares contents of files; a missing file equals no other one.
func sameContent(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// missingFolders lists the folders that must be created for a file, the deepest
// first.
func missingFolders(path string) (all []string) {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			return all
		}
		all = append(all, dir)
	}
}
