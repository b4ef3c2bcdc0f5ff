package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/approval"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/lineage"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

// target is a journal with one call that waits, which writes a file.
type targetPlace struct {
	dir, workspace, state, policy string
	call                          string
}

// newTarget lets a call wait. A flag of remit run is given with it.
func newTarget(t *testing.T, flags ...string) targetPlace {
	t.Helper()
	p := targetPlace{dir: t.TempDir()}
	p.workspace, p.state, p.policy = filepath.Join(p.dir, "ws"), filepath.Join(p.dir, "state"), filepath.Join(p.dir, "ask.rego")
	require.NoError(t, os.Mkdir(p.workspace, 0o700))
	require.NoError(t, os.WriteFile(p.policy, []byte("package remit\nask contains \"look\" if input.access.action == \"write\"\n"), 0o600))
	p.call = p.ask(t, "a.txt", flags...)
	return p
}

func (p targetPlace) at(args ...string) []string {
	return append(args, "--workspace", p.workspace, "--state", p.state)
}

// ask lets one more call wait, of a session of its own.
func (p targetPlace) ask(t *testing.T, file string, flags ...string) string {
	t.Helper()
	script := filepath.Join(p.dir, "s.jsonl")
	require.NoError(t, os.WriteFile(script, []byte(`{"tool":"file_write","args":{"path":"`+file+`","content":"x"}}`+"\n"), 0o600))
	code, out, _ := p.run(personHere, p.at(append([]string{"run", "--json", "--on-ask", "wait", "--policy", p.policy, script}, flags...)...)...)
	require.Equal(t, int(cli.ExitPending), code, out)
	return regexp.MustCompile(`c_[0-9a-z]{12}`).FindString(out)
}

// run runs a command in this process, with what is known of its caller.
func (p targetPlace) run(who func() cli.Caller, args ...string) (code int, out, errs string) {
	return p.runAs(func(w *cli.Env) { w.Caller = who }, args...)
}

func (p targetPlace) runAs(change func(*cli.Env), args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	w := testEnv(strings.NewReader(""), &o, &e)
	w.Username = func() (string, error) { return "boss", nil }
	change(&w)
	code = run(context.Background(), args, w)
	return code, o.String(), e.String()
}

func (p targetPlace) journal(t *testing.T, look func(j journal.Journal)) {
	t.Helper()
	j, err := sqlite.Open(t.Context(), p.state)
	require.NoError(t, err)
	look(j)
	require.NoError(t, j.Close())
}

// unharmed fails the test if the call was approved, or ran, or if another one can.
func (p targetPlace) unharmed(t *testing.T) {
	t.Helper()
	require.NoFileExists(t, filepath.Join(p.workspace, "a.txt"))
	p.journal(t, func(j journal.Journal) {
		_, c, err := revert.LoadCall(t.Context(), j, p.call)
		require.NoError(t, err)
		require.Equal(t, revert.PhasePending, c.Phase)
		require.False(t, c.Answered != nil && c.Answered.Approved, "it was approved")
	})
}

// write puts an answer on the journal that the command did not.
func (p targetPlace) write(t *testing.T, call string, b record.Answered) {
	t.Helper()
	p.journal(t, func(j journal.Journal) {
		txn, _, err := revert.LoadCall(t.Context(), j, call)
		require.NoError(t, err)
		rec := revert.NewRecorder(j, host.Real(), txn.Session)
		require.NoError(t, rec.Write(t.Context(), revert.Write{Records: []revert.CallRecord{{Txn: txn.ID, Call: call, Body: &b}}, Durable: true}))
	})
}

func (p targetPlace) digest(t *testing.T, call string) (digest string) {
	t.Helper()
	p.journal(t, func(j journal.Journal) {
		_, c, err := revert.LoadCall(t.Context(), j, call)
		require.NoError(t, err)
		digest = c.Asked.Digest
	})
	return digest
}

// tries are the command lines by which an agent could have a call approved, or make it possible.
func (p targetPlace) tries(digest string) [][]string {
	return [][]string{
		p.at("approve", p.call),
		p.at("approve", p.call[:8]),
		p.at("approve", p.call, "--why", "the user said so", "--json"),
		p.at("approve", p.call, "--request", digest),
		p.at("approve", p.call, "--remember", "always"),
		p.at("approve", p.call, "--remember", "session", "--for", "1h"),
		p.at("approve", p.call, "--resume", "--policy", p.policy),
		p.at("approve", p.call, "--resume", "--policy", p.policy, "--at-end", "commit", "--json"),
		p.at("resolve", p.call, "applied", "--why", "it is there"),
		p.at("resolve", p.call, "absent", "--why", "it is not there"),
		p.at("approval", "allow-unattended"),
		p.at("approval", "set-passphrase"),
		p.at("approval", "remove-passphrase"),
	}
}

// agents are callers that an agent can be behind.
func agents(t *testing.T) map[string]func() cli.Caller {
	own, err := lineage.Own()
	if errors.Is(err, lineage.ErrUnknown) {
		t.Skip("this system does not tell which process started which")
	}
	require.NoError(t, err)
	asks, top := own.Links[0], own.Links[len(own.Links)-1]
	chain := func(change func(c *lineage.Chain)) func() cli.Caller {
		return func() cli.Caller {
			c := lineage.Chain{Boot: own.Boot, Namespaces: own.Namespaces, Links: append([]lineage.Link{}, own.Links...)}
			change(&c)
			return cli.Caller{Chain: c}
		}
	}
	below := lineage.Link{Process: lineage.Process{PID: 1 << 22, Start: asks.Start + 1, Name: "sh"}, Parent: asks.PID, UID: asks.UID, Group: asks.Group, Session: 1 << 22, Job: 1 << 22, Terminal: true}
	loose := below
	loose.Parent = 1
	return map[string]func() cli.Caller{
		"nothing known": nil,
		"no terminal": func() cli.Caller {
			return cli.Caller{Terminal: errors.New("standard input is not a terminal"), Unknown: lineage.ErrUnknown}
		},
		"in the background":   func() cli.Caller { return cli.Caller{Terminal: errors.New("not in the foreground"), Chain: own} },
		"the asking process":  chain(func(*lineage.Chain) {}),
		"below it":            chain(func(c *lineage.Chain) { c.Links = append([]lineage.Link{below}, c.Links...) }),
		"its parents unknown": func() cli.Caller { return cli.Caller{Unknown: errors.New("a process ended meanwhile")} },
		"no chain":            func() cli.Caller { return cli.Caller{} },
		"other namespaces":    chain(func(c *lineage.Chain) { c.Namespaces = "pid:[1]user:[1]"; c.Links = []lineage.Link{below} }),
		"cut loose": chain(func(c *lineage.Chain) {
			c.Links = []lineage.Link{loose, {Process: lineage.Process{PID: 1, Start: 1}, UID: top.UID, Group: "init"}}
		}),
		"cut loose, top unseen": chain(func(c *lineage.Chain) { c.Links = []lineage.Link{loose} }),
		"in its job":            chain(func(c *lineage.Chain) { l := loose; l.Job, l.Group = asks.PID, "other"; c.Links = []lineage.Link{l} }),
		"in its session": chain(func(c *lineage.Chain) {
			l := loose
			l.Session, l.Group = asks.PID, "other"
			c.Links = []lineage.Link{l}
		}),
	}
}

// TestApprovalAttacks: of these ways to approve a call without a person, 0 get through. The processes are made up here;
// TestApprovalAttackProcesses has real ones.
func TestApprovalAttacks(t *testing.T) {
	tried := 0
	attack := func(t *testing.T, p targetPlace, change func(*cli.Env), args ...string) {
		t.Helper()
		tried++
		code, out, errs := p.runAs(change, args...)
		require.NotZero(t, code, "%q got through: %s%s", args, out, errs)
		require.NotContains(t, out, "approved by")
	}
	t.Run("from an agent's process", func(t *testing.T) {
		p := newTarget(t)
		for name, who := range agents(t) {
			for _, args := range p.tries(p.digest(t, p.call)) {
				attack(t, p, func(w *cli.Env) { w.Caller = who }, args...)
			}
			require.NoFileExists(t, filepath.Join(p.state, approval.SettingsFile), name)
		}
		p.unharmed(t)
	})
	t.Run("by who asks", func(t *testing.T) {
		p := newTarget(t)
		for _, who := range []string{"agent", ""} {
			for _, args := range p.tries(p.digest(t, p.call))[:8] {
				attack(t, p, func(w *cli.Env) { w.Username = func() (string, error) { return who, nil } }, args...)
			}
		}
		for _, args := range p.tries(p.digest(t, p.call))[:8] {
			attack(t, p, func(w *cli.Env) { w.Username = func() (string, error) { return "boss", errors.New("no such user") } }, args...)
		}
		p.unharmed(t)
	})
	t.Run("by ids that mean another call, or none", func(t *testing.T) {
		p, other := newTarget(t), newTarget(t)
		alike := []string{p.call}
		for len(alike) < 2 {
			alike = append(alike, p.ask(t, "b.txt"))
		}
		for _, id := range []string{
			"c_", "c_a", "c_000", p.call[:3], p.call[:5], p.call[2:], strings.ToUpper(p.call), p.call + "0", p.call + " ", " " + p.call, p.call + "\x00", p.call[:13] + "!", "*", "%", "c_%", "c_____",
			"c_000000000000", "t_000000000000", "s_000000000000", "../" + p.call, "c_\x1b[2J", strings.Repeat("c_", 400), other.call, other.call[:8], "-", "c_' OR 1=1",
		} {
			attack(t, p, func(*cli.Env) {}, p.at("approve", "--", id)...)
		}
		// The beginning of a call that does not wait any more is no beginning of one that does.
		attack(t, p, func(*cli.Env) {}, p.at("approve", p.call, "--request", other.digest(t, other.call))...)
		attack(t, p, func(*cli.Env) {}, p.at("approve", p.call, "--request", "sha256:"+strings.Repeat("0", 64))...)
		attack(t, p, func(*cli.Env) {}, "approve", p.call, "--state", other.state)
		attack(t, p, func(*cli.Env) {}, "approve", p.call, "--state", filepath.Join(p.dir, "none"))
		p.unharmed(t)
		other.unharmed(t)
	})
	t.Run("too late", func(t *testing.T) {
		p := newTarget(t)
		later := func(w *cli.Env) { w.Host = laterHost{host.Real()} }
		for _, args := range p.tries(p.digest(t, p.call))[:8] {
			attack(t, p, later, args...)
		}
		p.unharmed(t)
		code, out, _ := p.run(personHere, p.at("approve", p.call)...) // in time, and used too late
		require.Zero(t, code, out)
		attack(t, p, later, p.at("resume", p.call, "--policy", p.policy)...)
		require.NoFileExists(t, filepath.Join(p.workspace, "a.txt"))
	})
	t.Run("by a record that the command did not write", func(t *testing.T) {
		digest := func(p targetPlace) string { return p.digest(t, p.call) }
		for name, forge := range map[string]func(p targetPlace) record.Answered{
			"of another question": func(targetPlace) record.Answered {
				return record.Answered{Approved: true, By: "boss", Digest: "sha256:00"}
			},
			"of no question": func(targetPlace) record.Answered { return record.Answered{Approved: true, By: "boss"} },
			"cut": func(p targetPlace) record.Answered {
				return record.Answered{Approved: true, By: "boss", Digest: digest(p)[:40]}
			},
			"longer": func(p targetPlace) record.Answered {
				return record.Answered{Approved: true, By: "boss", Digest: digest(p) + "0"}
			},
			"in capitals": func(p targetPlace) record.Answered {
				return record.Answered{Approved: true, By: "boss", Digest: strings.ToUpper(digest(p))}
			},
			"of a call like it": func(p targetPlace) record.Answered {
				return record.Answered{Approved: true, By: "boss", Digest: p.digest(t, p.ask(t, "a.txt"))}
			},
			"by who asks": func(p targetPlace) record.Answered {
				return record.Answered{Approved: true, By: "agent", Digest: digest(p)}
			},
			"by nobody":    func(p targetPlace) record.Answered { return record.Answered{Approved: true, Digest: digest(p)} },
			"that says no": func(p targetPlace) record.Answered { return record.Answered{By: "boss", Digest: digest(p)} },
			"that takes a no back": func(p targetPlace) record.Answered {
				p.write(t, p.call, record.Answered{By: "boss", Digest: digest(p)})
				return record.Answered{Approved: true, By: "agent", Digest: digest(p)}
			},
		} {
			p := newTarget(t)
			p.write(t, p.call, forge(p))
			attack(t, p, func(*cli.Env) {}, p.at("resume", p.call, "--policy", p.policy)...)
			require.NoFileExists(t, filepath.Join(p.workspace, "a.txt"), name)
		}
	})
	t.Run("again", func(t *testing.T) {
		p := newTarget(t)
		code, out, errs := p.run(personHere, p.at("approve", p.call, "--resume", "--policy", p.policy)...)
		require.Zero(t, code, out+errs)
		require.NoError(t, os.Remove(filepath.Join(p.workspace, "a.txt")))
		for _, args := range append(p.tries("sha256:00")[:8], p.at("resume", p.call, "--policy", p.policy)) {
			attack(t, p, func(*cli.Env) {}, args...)
		}
		p.write(t, p.call, record.Answered{Approved: true, By: "boss", Digest: "sha256:00"})
		attack(t, p, func(*cli.Env) {}, p.at("resume", p.call, "--policy", p.policy)...)
		require.NoFileExists(t, filepath.Join(p.workspace, "a.txt"))
	})
	t.Run("by two at once", func(t *testing.T) {
		for range 5 {
			p := newTarget(t)
			tried++
			codes := make(chan int, 2)
			code, out, _ := p.run(personHere, p.at("approve", p.call)...)
			require.Zero(t, code, out)
			for range 2 {
				go func() {
					code, _, _ := p.run(personHere, p.at("resume", p.call, "--policy", p.policy, "--at-end", "commit")...)
					codes <- code
				}()
			}
			first, second := <-codes, <-codes
			require.True(t, (first == 0) != (second == 0), "it ran once: %d, %d", first, second)
		}
	})
	t.Run("by two answers at once", func(t *testing.T) {
		for _, words := range [][2]string{{"approve", "approve"}, {"approve", "deny"}, {"deny", "approve"}} {
			p := newTarget(t)
			tried++
			codes := [2]chan int{make(chan int, 1), make(chan int, 1)}
			for i, word := range words {
				go func() {
					code, _, _ := p.run(personHere, p.at(word, p.call, "--why", fmt.Sprint(i))...)
					codes[i] <- code
				}()
			}
			first, second := <-codes[0], <-codes[1]
			require.True(t, first == 0 || second == 0, "%v: %d, %d", words, first, second)
			denied := words[0] == "deny" && first == 0 || words[1] == "deny" && second == 0
			code, out, errs := p.run(personHere, p.at("resume", p.call, "--policy", p.policy, "--at-end", "commit")...)
			require.Equal(t, denied, code == int(cli.ExitDenied), "%v: a rejection counts in any order: %s%s", words, out, errs)
			_, err := os.Stat(filepath.Join(p.workspace, "a.txt"))
			require.Equal(t, denied, err != nil)
		}
	})
	t.Run("by what is set", func(t *testing.T) {
		p := newTarget(t)
		file := filepath.Join(p.state, approval.SettingsFile)
		phrase := `"kdf":"argon2id","time":3,"memory":65536,"threads":4,"salt":"AAAAAAAAAAAAAAAAAAAAAA=="`
		for name, text := range map[string]string{
			"empty": ``, "no JSON": `unattended`, "two members": `{"unattended":false,"unattended":true}`, "another case": `{"Unattended":true}`, "a text": `{"unattended":"true"}`,
			"a number": `{"unattended":1}`, "a list": `[{"unattended":true}]`, "something after it": `{"unattended":true}{}`, "unknown": `{"unattended":true,"always":true}`,
			"no key":          `{"unattended":true,"passphrase":{` + phrase + `}}`,
			"an empty key":    `{"unattended":true,"passphrase":{` + phrase + `,"key":""}}`,
			"a short key":     `{"unattended":true,"passphrase":{` + phrase + `,"key":"AA=="}}`,
			"no time":         `{"passphrase":{` + strings.Replace(phrase, `:3`, `:0`, 1) + `,"key":"` + strings.Repeat("A", 43) + `="}}`,
			"much memory":     `{"passphrase":{` + strings.Replace(phrase, `65536`, `4294967295`, 1) + `,"key":"` + strings.Repeat("A", 43) + `="}}`,
			"another KDF":     `{"passphrase":{` + strings.Replace(phrase, `argon2id`, `none`, 1) + `,"key":"` + strings.Repeat("A", 43) + `="}}`,
			"no threads":      `{"passphrase":{` + strings.Replace(phrase, `"threads":4`, `"threads":0`, 1) + `,"key":"` + strings.Repeat("A", 43) + `="}}`,
			"an empty object": `{"passphrase":{}}`,
		} {
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
			attack(t, p, func(w *cli.Env) { w.Caller = nil }, p.at("approve", p.call)...)
			p.unharmed(t)
			require.NoError(t, os.Remove(file), name)
		}
		require.NoError(t, os.WriteFile(file, []byte(`{"unattended":true}`), 0o600))
		for _, mode := range []os.FileMode{0o620, 0o602, 0o666, 0o777} {
			require.NoError(t, os.Chmod(file, mode))
			attack(t, p, func(w *cli.Env) { w.Caller = nil }, p.at("approve", p.call)...)
		}
		elsewhere := filepath.Join(p.workspace, "approval.json")
		require.NoError(t, os.Chmod(file, 0o600))
		require.NoError(t, os.Rename(file, elsewhere))
		require.NoError(t, os.Symlink(elsewhere, file))
		attack(t, p, func(w *cli.Env) { w.Caller = nil }, p.at("approve", p.call)...)
		require.NoError(t, os.Remove(file))
		require.NoError(t, os.Mkdir(file, 0o700))
		attack(t, p, func(w *cli.Env) { w.Caller = nil }, p.at("approve", p.call)...)
		p.unharmed(t)
	})
	t.Run("by a setting from before it asks", func(t *testing.T) {
		p, all := newTarget(t), agents(t)
		code, out, errs := p.run(personHere, p.at("deny", p.call)...)
		require.Zero(t, code, out+errs)
		code, out, errs = p.run(personHere, p.at("resume", p.call, "--policy", p.policy)...)
		require.Equal(t, int(cli.ExitDenied), code, out+errs)
		for _, name := range []string{"the asking process", "below it"} { // nothing waits, so no process is known
			code, out, errs = p.run(all[name], p.at("approval", "allow-unattended")...)
			require.Zero(t, code, out+errs)
			p.call = p.ask(t, "a.txt")
			for _, who := range all {
				attack(t, p, func(w *cli.Env) { w.Caller = who }, p.at("approve", p.call)...)
			}
			p.unharmed(t)
			code, out, errs = p.run(personHere, p.at("deny", p.call)...)
			require.Zero(t, code, out+errs)
			code, out, errs = p.run(personHere, p.at("resume", p.call, "--policy", p.policy)...)
			require.Equal(t, int(cli.ExitDenied), code, out+errs)
		}
		code, out, errs = p.run(personHere, p.at("approval", "refuse-unattended")...)
		require.Zero(t, code, out+errs)
		text, err := os.ReadFile(filepath.Join(p.state, approval.SettingsFile))
		require.NoError(t, err)
		require.JSONEq(t, `{"unattended":false}`, string(text))
	})
	t.Run("with another passphrase", func(t *testing.T) {
		p := newTarget(t)
		const right = "correct horse battery"
		code, out, errs := p.runAs(typing(right), p.at("approval", "set-passphrase")...)
		require.Zero(t, code, out+errs)
		for _, phrase := range []string{
			"", "correct horse batterz", "Correct horse battery", "correct horse battery ", " correct horse battery", "correct horse", "correct horse battery\x00", "boss", "correct\u00a0horse battery", strings.Repeat(right, 100),
		} {
			attack(t, p, typing(phrase), p.at("approve", p.call)...)
		}
		attack(t, p, func(*cli.Env) {}, p.at("approve", p.call)...) // no terminal
		attack(t, p, typing("wrong phrase"), p.at("approval", "remove-passphrase")...)
		attack(t, p, typing("wrong phrase"), p.at("approval", "allow-unattended")...)
		attack(t, p, typing("wrong phrase"), p.at("approval", "set-passphrase")...)
		script := filepath.Join(p.dir, "s.jsonl")
		attack(t, p, func(*cli.Env) {}, p.at("run", "--on-ask", "approve-unsafe", "--policy", p.policy, script)...)
		attack(t, p, typing("y"), p.at("run", "--on-ask", "prompt", "--policy", p.policy, script)...)
		p.unharmed(t)
	})
	t.Logf("%d attacks", tried)
	if runtime.GOOS == "linux" { // elsewhere processes are not compared
		require.GreaterOrEqual(t, tried, 200)
	}
}

// typing is a terminal at which a person types the same each time that it is opened.
func typing(text string) func(*cli.Env) {
	return func(w *cli.Env) {
		w.OpenTTY = func() (io.ReadWriteCloser, error) { return typed{strings.NewReader(text + "\n"), io.Discard}, nil }
	}
}

// laterHost is two days ahead.
type laterHost struct{ host.Host }

// Now is the day after tomorrow.
func (h laterHost) Now() time.Time { return h.Host.Now().Add(48 * time.Hour) }

// TestPassphrase: the phrase that was set approves, is not on disk, and costs what it is to cost.
func TestPassphrase(t *testing.T) {
	p := newTarget(t)
	const phrase = "correct horse battery"
	code, out, errs := p.runAs(typing(phrase), p.at("approval", "set-passphrase")...)
	require.Zero(t, code, out+errs)
	require.Contains(t, out, "with the passphrase")
	text, err := os.ReadFile(filepath.Join(p.state, approval.SettingsFile))
	require.NoError(t, err)
	require.NotContains(t, string(text), "horse")
	info, err := os.Stat(filepath.Join(p.state, approval.SettingsFile))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	var s approval.Settings
	require.NoError(t, json.Unmarshal(text, &s))
	require.True(t, s.Passphrase.Valid())
	require.EqualValues(t, 64<<10, s.Passphrase.Memory)
	require.NotEqual(t, approval.NewVerifier(phrase).Key, s.Passphrase.Key, "the salt is random")

	for _, short := range []string{"", "1234567", strings.Repeat("x", approval.MaxPhrase+1)} {
		code, _, _ = newTarget(t).runAs(typing(short), p.at("approval", "set-passphrase")...)
		require.NotZero(t, code)
	}
	code, out, errs = p.runAs(typing(phrase), p.at("approve", p.call, "--resume", "--policy", p.policy)...)
	require.Zero(t, code, out+errs)
	require.FileExists(t, filepath.Join(p.workspace, "a.txt"))
	code, out, _ = p.runAs(typing(phrase), p.at("approval", "remove-passphrase")...)
	require.Zero(t, code, out)
	require.NotContains(t, out, "passphrase")
}

// TestPromptAnswers: a question mark explains, d shows the difference, and what else is typed is no yes.
func TestPromptAnswers(t *testing.T) {
	for _, tt := range []struct {
		typed string
		code  int
		says  []string
	}{
		{"?\nd\ny", 0, []string{"d  shows what the call would change", "-old", "+x"}},
		{"d\nn", int(cli.ExitDenied), []string{"+x"}},
		{"D\nyes", 0, nil},
		{"yy", int(cli.ExitDenied), nil},
		{"?", int(cli.ExitDenied), []string{"allow it once? [y/N/d/?]"}},
	} {
		p := newTarget(t)
		require.NoError(t, os.WriteFile(filepath.Join(p.workspace, "a.txt"), []byte("old"), 0o600))
		var shown bytes.Buffer
		code, out, errs := p.runAs(func(w *cli.Env) {
			w.OpenTTY = func() (io.ReadWriteCloser, error) { return typed{strings.NewReader(tt.typed + "\n"), &shown}, nil }
		}, p.at("run", "--on-ask", "prompt", "--policy", p.policy, filepath.Join(p.dir, "s.jsonl"))...)
		require.Equal(t, tt.code, code, fmt.Sprint(out, errs))
		for _, s := range tt.says {
			require.Contains(t, shown.String(), s, tt.typed)
		}
		if tt.typed == "?" { // the terminal closes
			require.Contains(t, out, "the approver did not answer: the terminal closed")
			require.NotContains(t, out, "said no")
		}
	}
}

// TestPromptOfACommit: yes keeps what the transaction did, no reverts it, and without an answer it waits.
func TestPromptOfACommit(t *testing.T) {
	for typing, want := range map[string]cli.ExitCode{"d\ny": cli.ExitOK, "n": cli.ExitDenied, "?": cli.ExitPending} {
		p := newTarget(t)
		gate := filepath.Join(p.dir, "gate.rego")
		require.NoError(t, os.WriteFile(gate, []byte("package remit\n\nallow contains \"all\" if true\n\nask_commit contains \"look\" if input.txn.totals.effects > 0\n"), 0o600))
		var shown bytes.Buffer
		code, out, errs := p.runAs(func(w *cli.Env) {
			w.OpenTTY = func() (io.ReadWriteCloser, error) { return typed{strings.NewReader(typing + "\n"), &shown}, nil }
		}, p.at("run", "--on-ask", "prompt", "--policy", gate, filepath.Join(p.dir, "s.jsonl"))...)
		require.Equal(t, int(want), code, out+errs)
		switch want {
		case cli.ExitOK:
			require.FileExists(t, filepath.Join(p.workspace, "a.txt"))
		case cli.ExitDenied:
			require.NoFileExists(t, filepath.Join(p.workspace, "a.txt"))
		default:
			require.Contains(t, shown.String(), "what the transaction did stays")
			_, out, errs = p.run(personHere, p.at("pending")...)
			require.Regexp(t, `commit of 1 effect`, out, errs)
		}
	}
}
