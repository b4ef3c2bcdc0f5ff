// Package mergecheck judges the merge of a text, by what a person must find in
// it and by git merge-file. It uses no other package of this module.
package mergecheck

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Merge is a merge to judge: a person changed Left to Now, and the change from
// Before to Left is taken out of Now.
type Merge struct {
	Before, Left, Now string
	Clean             bool   // the merge claims to have no conflict
	Result            string // the file afterwards
}

// Verdict is the result of a check.
type Verdict struct {
	Stricter bool // git merges it, and it was left alone
	Both     bool // git merges it too, to the same text
	Looser   bool // git finds a conflict, and the lines are right
}

// Git runs git merge-file in a folder. clean is false if it has a conflict.
func Git(dir, now, left, before string) (result string, clean bool, err error) {
	names := []string{"now", "left", "before"}
	for i, text := range []string{now, left, before} {
		names[i] = filepath.Join(dir, names[i])
		if err := os.WriteFile(names[i], []byte(text), 0o600); err != nil {
			return "", false, err
		}
	}
	out, err := exec.Command("git", "merge-file", "-p", "-q", names[0], names[1], names[2]).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 && exit.ExitCode() < 128 {
		return "", false, nil
	}
	return string(out), err == nil, err
}

// Check judges a merge. It returns an error for a lost line of the person, a
// remaining line of the agent, a missing line from before, another result than
// git's, and a changed file after a conflict.
//
// Equal lines can be compared in several ways. So few merges are conflicts for
// only one of the two, and the verdict says so.
func Check(dir string, m Merge) (Verdict, error) {
	want, clean, err := Git(dir, m.Now, m.Left, m.Before)
	if err != nil {
		return Verdict{}, err
	}
	if !m.Clean {
		if m.Result != m.Now {
			return Verdict{}, errors.New("a conflict changed the file")
		}
		return Verdict{Stricter: clean}, nil
	}
	if err := m.lines(); err != nil {
		return Verdict{}, err
	}
	switch {
	case !clean:
		return Verdict{Looser: true}, nil
	case want != m.Result:
		return Verdict{}, fmt.Errorf("git merges to %q", want)
	}
	return Verdict{Both: true}, nil
}

// lines checks each line whose text no version has twice. What the person added or
// removed, and what the agent did, adds up: both together if they are different
// changes, once if they are the same one. Of equal lines, only git tells which
// one is meant.
func (m Merge) lines() error {
	before, left, now, result := count(m.Before), count(m.Left), count(m.Now), count(m.Result)
	for _, all := range []map[string]int{before, left, now, result} {
		for line := range all {
			if text := strings.TrimRight(line, "\r\n"); max(strings.Count(m.Before, text), strings.Count(m.Left, text), strings.Count(m.Now, text)) > 1 {
				continue
			}
			person, back := now[line]-left[line], before[line]-left[line]
			least, most := left[line]+person+back, left[line]+person+back
			switch {
			case person > 0 && back > 0:
				least = left[line] + max(person, back)
			case person < 0 && back < 0:
				most = left[line] + min(person, back)
			}
			if is := result[line]; is < least || is > most {
				return fmt.Errorf("the line %q is there %d times, want %d to %d: before %d, left %d, now %d", line, is, least, most, before[line], left[line], now[line])
			}
		}
	}
	return nil
}

func count(text string) map[string]int {
	n := map[string]int{}
	for line := range strings.Lines(text) {
		n[line]++
	}
	return n
}
