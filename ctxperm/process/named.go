package process

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/sandbox"
)

// The rules that the output of a program can reveal.
const (
	ruleHidden    = "hidden" // a masked name
	ruleInvisible = "unseen" // a path that programs do not see
)

// mostNamed bounds the names that a result lists for one rule.
const mostNamed = 8

// named adds the rules of the sandbox that the program probably met to a
// result. It finds hidden names in the command line and the output, and errors
// that rules cause. For a successful program it uses only the command line and
// standard error.
func (h *runHandle) named(cmd Cmd, r *Result) {
	words := string(r.Stderr)
	if r.Code != 0 || r.Signal != "" {
		words += "\n" + string(r.Stdout)
	}
	r.Restrictions = append(r.Restrictions, h.view.hiddenIn(strings.Join(cmd.Argv, "\n")+"\n"+words)...)
	r.Restrictions = append(r.Restrictions, h.view.hiddenPathsIn(words)...)
	r.Restrictions = append(r.Restrictions, errorsIn(words+"\n"+r.Signal)...)
}

// masked is a name that programs do not see.
type masked struct{ root, dir, name string } // the folder of the root, and the name below it

// hiddenIn finds the masked names in a text.
func (v view) hiddenIn(text string) (all []Restriction) {
	if len(v.masked) == 0 {
		return nil
	}
	byLast := map[string][]masked{}
	for _, m := range v.masked {
		byLast[path.Base(m.name)] = append(byLast[path.Base(m.name)], m)
	}
	found := map[masked]bool{}
	for token := range strings.FieldsFuncSeq(text, outsideOfPaths) {
		token = path.Clean(strings.TrimRight(token, "."))
		for end := range len(token) + 1 {
			if end < len(token) && token[end] != '/' {
				continue
			}
			at := token[:end] // a path below a masked folder also names it
			for _, m := range byLast[path.Base(at)] {
				if len(found) < mostNamed && !found[m] && m.is(at) {
					found[m] = true
					all = append(all, Restriction{ruleHidden, fmt.Sprintf("%q is hidden from programs by the policy", m.root+"/"+m.name)})
				}
			}
		}
	}
	return all
}

// is reports whether a path can mean a masked name. An absolute path must equal
// it. A relative one may start in any folder of the root.
func (m masked) is(at string) bool {
	if path.IsAbs(at) {
		return at == m.dir+"/"+m.name
	}
	for strings.HasPrefix(at, "../") {
		at = at[len("../"):]
	}
	return strings.HasSuffix("/"+m.name, "/"+at)
}

// outsideOfPaths reports whether a character is unlikely in a path.
func outsideOfPaths(r rune) bool {
	return r <= ' ' || strings.ContainsRune("'\"`‘’“”()[]{}<>|&;,:=*?$", r)
}

// hiddenPathsIn finds absolute paths that programs do not see, in lines that report
// a missing file. It does not check whether they exist, because the program
// must not learn that.
func (v view) hiddenPathsIn(text string) (all []Restriction) {
	var found []string
	for line := range strings.Lines(text) {
		if !mentions(line, "No such file", "not found", "ENOENT", "cannot access", "annot connect", "does not exist", "can't open", "cannot open") {
			continue
		}
		for token := range strings.FieldsFuncSeq(line, outsideOfPaths) {
			token = strings.TrimRight(token, ".")
			for strings.HasPrefix(token, "//") { // follows a scheme
				token = token[1:]
			}
			name := path.Clean(token)
			if len(token) < 2 || token[0] != '/' || slices.Contains(found, name) || v.shows(name) || len(found) == mostNamed {
				continue
			}
			found = append(found, name)
			all = append(all, Restriction{ruleInvisible, fmt.Sprintf("%q is outside of what programs see: the roots, the programs and libraries of the system, /tmp, /var/tmp, /dev and /proc", name)})
		}
	}
	return all
}

// shows reports whether programs see a path if it exists.
func (v view) shows(name string) bool {
	places := append([]string{"/tmp", "/var/tmp", "/dev", "/proc"}, slices.Concat(sandbox.System(), v.more)...)
	for dir := range v.dirs {
		places = append(places, v.dirs[dir])
	}
	return slices.ContainsFunc(places, func(place string) bool {
		return name == place || strings.HasPrefix(name, place+"/") || strings.HasPrefix(place, name+"/")
	})
}

// errorsIn finds errors that rules of the sandbox can cause.
func errorsIn(text string) (all []Restriction) {
	for _, e := range []struct {
		rule, text string
		words      []string
	}{
		{"read-only", "programs can write only in the roots that their call may change, /tmp, /var/tmp and /dev/shm", []string{"Read-only file system", "EROFS"}},
		{"rights", "programs have no rights of an administrator (no capabilities, no setuid): not those of sudo, chown to others, or mount", []string{"Operation not permitted", "EPERM", "no new privileges", "effective uid is not 0", "must be setuid"}},
		{"scratch", "/tmp, and overlays in memory, hold no more than the limit of scratch space (Limits.Scratch)", []string{"No space left on device", "ENOSPC"}},
		{"files", "one process can have no more files open than the limit (Limits.Files)", []string{"Too many open files", "EMFILE"}},
		{"processes", "a call can have no more processes than the limit (Limits.Processes)", []string{"fork: Resource temporarily unavailable", "fork: retry", "Cannot fork", "EAGAIN"}},
		{"memory", "one process can have no more private memory than the limit (Limits.Memory)", []string{"Cannot allocate memory", "ENOMEM", "bad_alloc", "MemoryError", "out of memory"}},
		{"file size", "one file can be no larger than the limit (Limits.FileSize)", []string{"File too large", "EFBIG", "file size limit exceeded"}},
		{"processor", "one process can use no more processor time than the limit (Limits.CPU)", []string{"CPU time limit exceeded", "cpu time limit exceeded"}},
	} {
		if mentions(text, e.words...) {
			all = append(all, Restriction{e.rule, e.text})
		}
	}
	return all
}

func mentions(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}
