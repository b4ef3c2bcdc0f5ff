package process

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
)

// words writes facts in one line; what is only known when it runs is ?.
func words(f *perm.ScriptFacts) string {
	known := func(s *string) string {
		if s == nil {
			return "?"
		}
		return fmt.Sprintf("%q", *s)
	}
	var out []string
	for _, c := range f.Commands {
		line := known(c.Program)
		for _, a := range c.Args {
			line += " " + known(a)
		}
		out = append(out, line)
	}
	for _, r := range f.Redirects {
		out = append(out, r.Op+known(r.Path))
	}
	if f.Dynamic {
		out = append(out, "dynamic")
	}
	if f.Error != "" {
		out = append(out, "unread")
	}
	return strings.Join(out, "; ")
}

func TestScriptFacts(t *testing.T) {
	for script, want := range map[string]string{
		"ls":                                `"ls"`,
		"rm -rf a 'b c' \"d\"e f\\ g":       `"rm" "-rf" "a" "b c" "de" "f g"`,
		"rm *":                              `"rm" ?; dynamic`,
		"rm '*' \\* \"a?\"":                 `"rm" "*" "*" "a?"`,
		"cat ~/.ssh/id_rsa; echo a~":        `"cat" ?; "echo" "a~"; dynamic`,
		"echo {a,b}":                        `"echo" ?; dynamic`,
		"X=1; echo $X \"${X}\" '$X'":        `"echo" ? ? "$X"; dynamic`,
		"$CMD a":                            `? "a"; dynamic`,
		"a && b || c; (d) & e | f":          `"a"; "b"; "c"; "d"; "e"; "f"`,
		"if a; then b; else c; fi":          `"a"; "b"; "c"`,
		"f() { rm x; }; f":                  `"rm" "x"; "f"`,
		"echo $(rm x) `rm y`":               `"echo" ? ?; "rm" "x"; "rm" "y"; dynamic`,
		"cat < in > out 2>> log 2>&1":       `"cat"; <"in"; >"out"; >>"log"`,
		"a >&f; b 1>& 'g h'; c 2>&h":        `"a"; "b"; "c"; >&"f"; >&"g h"; >&"h"`,
		"a >&2 1>&\"3\" 2>&- 4>&5-; b >&1x": `"a"; "b"; >&"1x"`,
		"a >&\"$X\"; b <&\"$X\"; c <&3":     `"a"; "b"; "c"; >&?; dynamic`,
		"a <> f; b >| g; c &> h; d &>> i":   `"a"; "b"; "c"; "d"; <>"f"; >|"g"; &>"h"; &>>"i"`,
		"> f; { a; } > g; f() { b; } > h":   `"a"; "b"; >"f"; >"g"; >"h"`,
		"exec {fd}> f; a <<< '> g'":         `"exec"; "a"; >"f"; dynamic`,
		"cat > \"$F\"":                      `"cat"; >?; dynamic`,
		"cat <<E\n$(rm x)\nE":               `"cat"; "rm" "x"; dynamic`,
		"sh -c 'rm x; bash -c \"rm y\"'":    `"sh" "-c" "rm x; bash -c \"rm y\""; "rm" "x"; "bash" "-c" "rm y"; "rm" "y"`,
		"sh -c \"$X\"":                      `"sh" "-c" ?; dynamic`,
		"sh script.sh":                      `"sh" "script.sh"; dynamic`,
		"eval 'rm x'":                       `"eval" "rm x"; dynamic`,
		"find . -exec rm {} +":              `"find" "." "-exec" "rm" ? "+"; dynamic`,
		"/usr/bin/env rm":                   `"/usr/bin/env" "rm"; dynamic`,
		"echo \"a\\$b\\c\" a\\\nb $'x' '' ": `"echo" "a$b\\c" "ab" ? ""; dynamic`,
		"if a; then":                        `dynamic; unread`,
		"":                                  ``,
	} {
		raw, err := json.Marshal(map[string]string{"script": script})
		require.NoError(t, err)
		require.Equal(t, want, words(scriptOf(raw)), script)
	}
	deep := "rm x"
	for range deepest + 2 {
		deep = "sh -c '" + strings.ReplaceAll(deep, "'", `'\''`) + "'"
	}
	raw, err := json.Marshal(map[string]string{"script": deep})
	require.NoError(t, err)
	require.True(t, scriptOf(raw).Dynamic)
	require.Equal(t, "dynamic; unread", words(scriptOf(json.RawMessage("{"))))
}

// TestRedirectsAreAllThatAppears: a shell makes no file by itself that is not told of.
func TestRedirectsAreAllThatAppears(t *testing.T) {
	for _, shell := range []string{"bash", "dash"} {
		if _, err := exec.LookPath(shell); err != nil {
			continue
		}
		files := 0
		for _, n := range []string{"", "1", "{v}"} {
			for _, op := range []string{">", ">>", ">|", "<", "<>", ">&", "<&", "&>", "&>>", "<<<", "<<", "<<-"} {
				for _, word := range []string{"f", "-", "2-", "1x", "\"f g\"", "'1'"} {
					script := ": " + n + op + word + "\n:\n" + strings.Trim(word, `"'\`) + "\n"
					raw, err := json.Marshal(map[string]string{"script": script})
					require.NoError(t, err)
					facts := scriptOf(raw)
					if facts.Error != "" {
						continue // and so nothing is claimed
					}
					told := map[string]bool{}
					for _, r := range facts.Redirects {
						require.NotNil(t, r.Path, script)
						told[*r.Path] = true
					}
					cmd := exec.Command(shell, "-c", script)
					cmd.Dir = t.TempDir()
					_ = cmd.Run() // it may well complain
					made, err := os.ReadDir(cmd.Dir)
					require.NoError(t, err)
					for _, e := range made {
						files++
						require.True(t, told[e.Name()], "%s makes %q of %q, and what was told is %v", shell, e.Name(), script, told)
					}
				}
			}
		}
		require.Greater(t, files, 20, shell)
	}
}
