package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/cmd/remit/internal/approval"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
)

// personShell is an interactive shell at a terminal of its own: what a person types into.
type personShell struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
	n   int
}

func newPersonShell(t *testing.T, bin string, env ...string) *personShell {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	if f, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0); err != nil {
		t.Skip("terminals cannot be made: " + err.Error())
	} else {
		require.NoError(t, f.Close())
	}
	// The shell has no parent that runs. Else a developer's own interactive shell would be the person, and these tests the agent.
	cmd := exec.Command("sh", "-c", `"$0" "$@" <&3 &`, filepath.Join(bin, "onpty"), bash, "--norc", "--noprofile", "-i")
	cmd.Env = append(append(os.Environ(), "PS1=", "PS2=", "PATH="+bin+":"+os.Getenv("PATH"), "TERM=dumb", "NO_COLOR=1", "HISTFILE="), env...)
	typed, in, err := os.Pipe()
	require.NoError(t, err)
	out, written, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = written, os.Stderr, []*os.File{typed}
	require.NoError(t, cmd.Run())
	require.NoError(t, errors.Join(typed.Close(), written.Close()))
	s := &personShell{t: t, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		_, _ = io.WriteString(in, "\nexit\n")
		_ = in.Close()
		_, _ = io.Copy(io.Discard, s.out)
		_ = out.Close()
	})
	code, said := s.types("stty -echo")
	require.Zero(t, code, said)
	return s
}

// types runs one line, and returns its exit code and what was written.
func (s *personShell) types(line string) (code int, out string) {
	s.t.Helper()
	s.n++
	// One line: what runs may read from the terminal.
	_, err := fmt.Fprintf(s.in, "%s; echo \"en\"d-%d:$?:\n", line, s.n)
	require.NoError(s.t, err)
	end := regexp.MustCompile(fmt.Sprintf(`end-%d:(\d+):`, s.n))
	var all strings.Builder
	for {
		text, err := s.out.ReadString('\n')
		require.NoError(s.t, err, all.String())
		if found := end.FindStringSubmatch(text); found != nil {
			code, err = strconv.Atoi(found[1])
			require.NoError(s.t, err)
			return code, all.String()
		}
		all.WriteString(text)
	}
}

// commandFolder has the commands of these tests, without the race detector.
func commandFolder(t *testing.T) string {
	dir := t.TempDir()
	for _, name := range []string{"really", "onpty"} {
		require.NoError(t, os.Link(self(), filepath.Join(dir, name)))
	}
	return dir
}

// asks lets a call wait that a process below a shell asks for.
func (s *personShell) asks(p *targetPlace, file string) (said string) {
	s.t.Helper()
	script := filepath.Join(p.dir, "s.jsonl")
	require.NoError(s.t, os.WriteFile(script, []byte(`{"tool":"file_write","args":{"path":"`+file+`","content":"x"}}`+"\n"), 0o600))
	code, out := s.types("really run --principal agent-x --on-ask wait --policy " + p.policy + " --workspace " + p.workspace + " --state " + p.state + " " + script)
	require.Equal(s.t, int(cli.ExitPending), code, out)
	p.call = regexp.MustCompile(`c_[0-9a-z]{12}`).FindString(out)
	return out
}

func emptyTarget(t *testing.T) *targetPlace {
	t.Helper()
	p := &targetPlace{dir: t.TempDir()}
	p.workspace, p.state, p.policy = filepath.Join(p.dir, "ws"), filepath.Join(p.dir, "state"), filepath.Join(p.dir, "ask.rego")
	require.NoError(t, os.Mkdir(p.workspace, 0o700))
	require.NoError(t, os.WriteFile(p.policy, []byte("package remit\nask contains \"look\" if input.access.action == \"write\"\n"), 0o600))
	return p
}

// TestApprovalAttackProcesses: an agent starts remit, and then tries from its own processes to approve: of these ways 0 get through.
func TestApprovalAttackProcesses(t *testing.T) {
	bin, p := commandFolder(t), emptyTarget(t)
	shell, elsewhere := newPersonShell(t, bin), newPersonShell(t, bin)
	write := func(name, text string) string {
		path := filepath.Join(p.dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o700))
		return path
	}
	// The agent: a program that the person started, which runs remit and then what it likes.
	script := write("s.jsonl", `{"tool":"file_write","args":{"path":"a.txt","content":"x"}}`+"\n")
	try := write("try.sh", "#!/bin/sh\nf=$1; shift\n\"$@\" > \"$f.out\" 2>&1\necho $? > \"$f.tmp\"\nmv \"$f.tmp\" \"$f\"\n")
	ways := []string{
		`TRY </dev/null`,
		`TRY </dev/tty`,
		`yes | TRY`,
		`setsid TRY </dev/tty`,
		`nohup TRY </dev/tty >/dev/null 2>&1 &`,
		`(TRY </dev/tty &)`,
		`(setsid TRY </dev/tty &)`,
		`sh -c 'sh -c "TRY" </dev/tty'`,
		`env -i PATH="$PATH" HOME=/ TRY </dev/tty`,
		`onpty TRY`,
		`setsid onpty TRY`,
		`(onpty TRY </dev/null &)`,
		`(setsid onpty TRY </dev/null >/dev/null 2>&1 &)`,
		`(setsid nohup onpty sh -c "TRY" </dev/null >/dev/null 2>&1 &)`,
		`onpty bash --norc -i -c "TRY"`,
		`(setsid onpty bash --norc -i -c "TRY" </dev/null >/dev/null 2>&1 &)`,
		`(setsid onpty onpty TRY </dev/null >/dev/null 2>&1 &)`,
	}
	var b strings.Builder
	fmt.Fprintf(&b, "really run --json --principal agent-x --on-ask wait --policy %s --workspace %s --state %s %s > %s/asked\n", p.policy, p.workspace, p.state, script, p.dir)
	fmt.Fprintf(&b, "call=$(sed -n 's/.*\"call\":\"\\([^\"]*\\)\".*/\\1/p' %s/asked)\n", p.dir)
	b.WriteString("wait_for() { n=0; until [ -e \"$1\" ] || [ $n = 3000 ]; do sleep 0.02; n=$((n+1)); done; }\n")
	var named []string // the way of each attack
	for i, way := range ways {
		tries := []string{"approve $call", "approve $call --resume --policy " + p.policy, "approval allow-unattended"}
		if i%5 != 0 { // each takes a process
			tries = tries[:1]
		}
		for _, tries := range tries {
			named = append(named, way)
			n := len(named)
			file := filepath.Join(p.dir, "r"+strconv.Itoa(n))
			command := try + " " + file + " really " + tries + " --workspace " + p.workspace + " --state " + p.state
			fmt.Fprintf(&b, "%s\nwait_for %s\n", strings.ReplaceAll(way, "TRY", command), file)
		}
	}
	agent := write("agent.sh", "export call\n"+strings.Replace(b.String(), "wait_for()", "export call\nwait_for()", 1))
	code, out := shell.types("sh " + agent)
	require.Zero(t, code, out)
	for i, way := range named {
		file := filepath.Join(p.dir, "r"+strconv.Itoa(i+1))
		got, err := os.ReadFile(file)
		require.NoError(t, err, "attack %d: %s", i+1, way)
		said, err := os.ReadFile(file + ".out")
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(int(cli.ExitDenied)), strings.TrimSpace(string(got)), "attack %d: %s: %s", i+1, way, said)
	}
	asked, err := os.ReadFile(filepath.Join(p.dir, "asked"))
	require.NoError(t, err)
	p.call = regexp.MustCompile(`c_[0-9a-z]{12}`).FindString(string(asked))
	require.NotContains(t, string(asked), "remit approve", "what the agent reads does not say how")
	p.unharmed(t)
	require.NoFileExists(t, filepath.Join(p.state, approval.SettingsFile))
	t.Logf("%d attacks", len(named))

	// The person can, at another terminal.
	code, out = elsewhere.types("really approve " + p.call + " --resume --policy " + p.policy + " --state " + p.state)
	require.Zero(t, code, out)
	require.FileExists(t, filepath.Join(p.workspace, "a.txt"))
}

// TestApprovalAttacksByHiding: an agent hides how its processes belong together, before remit starts or with what starts it.
func TestApprovalAttacksByHiding(t *testing.T) {
	bin := commandFolder(t)
	for name, agent := range map[string]string{
		"a terminal that was cut loose before remit started": "(setsid onpty sh ATTACK >/dev/null 2>&1 </dev/null &)\n. RUN\n",
		"remit in an interactive shell of the agent":         "onpty sh ATTACK </dev/null &\nonpty bash --norc -i -c '. RUN' </dev/null >/dev/null 2>&1\nwait\n",
		"remit in a program that ignores job control":        "onpty sh ATTACK </dev/null &\nonpty bash -c 'trap \"\" TSTP TTOU; . RUN' </dev/null >/dev/null 2>&1\nwait\n",
		"remit cut loose from the agent":                     "(setsid sh RUN &)\nonpty sh ATTACK </dev/null\n",
		"remit cut loose, the attack in a shell":             "(setsid sh RUN &)\nonpty bash --norc -i -c '. ATTACK' </dev/null\n",
		"both cut loose":                                     "(setsid sh RUN &)\n(setsid onpty sh ATTACK </dev/null >/dev/null 2>&1 &)\n",
	} {
		t.Run(name, func(t *testing.T) {
			p := emptyTarget(t)
			file := func(name string) string { return filepath.Join(p.dir, name) }
			write := func(name, text string) {
				require.NoError(t, os.WriteFile(file(name), []byte(text), 0o600))
			}
			write("s.jsonl", `{"tool":"file_write","args":{"path":"a.txt","content":"x"}}`+"\n")
			at := " --policy " + p.policy + " --state " + p.state
			// Both are pipes: each waits for the other, and the test for the last.
			require.NoError(t, unix.Mkfifo(file("asked"), 0o600))
			require.NoError(t, unix.Mkfifo(file("result"), 0o600))
			write("run.sh", "really run --json --principal agent-x --on-ask wait --workspace "+p.workspace+at+" "+file("s.jsonl")+" > "+file("asked")+" 2>/dev/null\n")
			write("attack.sh", "call=$(sed -n 's/.*\"call\":\"\\([^\"]*\\)\".*/\\1/p' "+file("asked")+")\n"+
				"said=$(really approve $call --resume"+at+" 2>&1); echo \"$? $said\" > "+file("result")+"\n")
			write("agent.sh", strings.NewReplacer("RUN", file("run.sh"), "ATTACK", file("attack.sh")).Replace(agent))
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				newPersonShell(t, bin).types("sh " + file("agent.sh"))
			}()
			said, err := os.ReadFile(file("result"))
			require.NoError(t, err)
			<-ended
			require.Regexp(t, "^3 ", string(said))
			require.Contains(t, string(said), "an agent can be behind this command")
			require.Contains(t, string(said), "(process ", "it is refused for what is above it, and not for its terminal")
			require.NoFileExists(t, filepath.Join(p.workspace, "a.txt"))
		})
	}
}

// TestApprovalOfTheNextQuestion: a person lets a call go on, which asks once more. The process of the person asks then, and the agent
// still is the one that asked first.
func TestApprovalOfTheNextQuestion(t *testing.T) {
	bin, p := commandFolder(t), emptyTarget(t)
	agent, person := newPersonShell(t, bin), newPersonShell(t, bin)
	for _, name := range []string{"a", "b"} {
		require.NoError(t, os.MkdirAll(filepath.Join(p.workspace, "from", name), 0o700))
	}
	at := " --policy " + p.policy + " --workspace " + p.workspace + " --state " + p.state
	file := func(name, text string) string {
		path := filepath.Join(p.dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	file("ask.rego", "package remit\nask contains \"look\" if input.access.action == \"write\"\nallow contains \"looks\" if input.access.action in {\"read\", \"list\"}\n")
	script := file("s.jsonl", `{"tool":"file_copy","args":{"from":"from","to":"to"}}`+"\n")
	ready, again, result := filepath.Join(p.dir, "ready"), filepath.Join(p.dir, "again"), filepath.Join(p.dir, "result")
	for _, pipe := range []string{ready, again} {
		require.NoError(t, unix.Mkfifo(pipe, 0o600))
	}
	program := file("agent.sh", "really run --principal agent-x --on-ask wait"+at+" "+script+" > "+ready+" 2>&1\n"+
		"read digest < "+again+"\n"+
		"onpty really approve $digest --state "+p.state+" > "+result+" 2>&1 </dev/null; echo $? >> "+result+"\n")
	ended := make(chan string, 1)
	go func() {
		_, out := agent.types("sh " + program)
		ended <- out
	}()
	said, err := os.ReadFile(ready)
	require.NoError(t, err)
	p.call = regexp.MustCompile(`c_[0-9a-z]{12}`).FindString(string(said))
	require.NotEmpty(t, p.call, string(said))
	code, out := person.types("really approve " + p.call + " --resume" + at)
	require.Equal(t, int(cli.ExitPending), code, out)

	require.NoError(t, os.WriteFile(again, []byte(p.call+" --request "+p.digest(t, p.call)+"\n"), 0o600))
	<-ended
	got, err := os.ReadFile(result)
	require.NoError(t, err)
	require.Contains(t, string(got), "an agent can be behind this command")
	require.True(t, strings.HasSuffix(string(got), "\n3\n"), "%s", got)
	require.NoDirExists(t, filepath.Join(p.workspace, "to"))

	code, out = person.types("really approve " + p.call + " --request " + p.digest(t, p.call) + " --resume" + at)
	require.Zero(t, code, out)
	require.DirExists(t, filepath.Join(p.workspace, "to", "b"))
}

// TestApprovalFromTheSandbox: a program of the agent in the sandbox has nothing to approve with.
func TestApprovalFromTheSandbox(t *testing.T) {
	if !hasSandbox() {
		t.Skip("no sandbox on this machine")
	}
	p, bin := newTarget(t), commandFolder(t)
	policy := filepath.Join(p.dir, "all.rego")
	require.NoError(t, os.WriteFile(policy, []byte("package remit\nallow contains \"all\" if input.tool.name == \"shell_run\"\n"), 0o600))
	for i, script := range []string{
		bin + "/really approve " + p.call + " --state " + p.state,
		bin + "/onpty " + bin + "/really approve " + p.call + " --state " + p.state,
		"setsid " + bin + "/onpty " + bin + "/really approve " + p.call + " --state " + p.state,
		"mkdir -p " + p.state + "; echo '{\"unattended\":true}' > " + p.state + "/approval.json",
		"rm -rf " + p.state,
		"cp -r . " + p.state,
		"mv " + p.state + " here",
		"ln -s " + p.state + " link; echo '{\"unattended\":true}' > link/approval.json",
	} {
		file := filepath.Join(p.dir, "sandbox.jsonl")
		text, err := json.Marshal(script)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, []byte(`{"tool":"shell_run","args":{"script":`+string(text)+`}}`+"\n"), 0o600))
		_, out, errs := p.run(personHere, p.at("run", "--policy", policy, file)...)
		require.NotContains(t, out+errs, "approved by", i)
		require.NoFileExists(t, filepath.Join(p.state, approval.SettingsFile), script)
		p.unharmed(t)
	}
}

// TestHonestApprovals: a person approves by at most two commands.
func TestHonestApprovals(t *testing.T) {
	bin := commandFolder(t)
	asker, person := newPersonShell(t, bin), newPersonShell(t, bin)
	alone := func(args string) string { return "setsid -w really " + args + " </dev/null" }
	const resume = " --resume --policy POLICY --state STATE"
	for i, way := range [][]string{
		{"really approve CALL" + resume},
		{"really approve CALL --state STATE", "really resume CALL --policy POLICY --at-end commit --state STATE"},
		{"really approve PREFIX" + resume},
		{"really pending --state STATE", "really approve CALL" + resume},
		{"really pending CALL --state STATE", "really approve CALL" + resume},
		{"really approve --state STATE", "really approve CALL" + resume},
		{"really approve CALL --why 'looks fine'" + resume},
		{"really approve CALL --json" + resume},
		{"really approve CALL --at-end leave-open" + resume},
		{"really approve CALL --remember session" + resume},
		{"really approve CALL --remember always --for 1h" + resume},
		{"really approve CALL --request DIGEST" + resume},
		{"really approve CALL --workspace WORKSPACE" + resume},
		{"cd WORKSPACE", "really approve CALL" + resume},
		{"really show CALL --state STATE", "really approve CALL" + resume},
		{"sh -c 'really approve CALL" + resume + "'"},
		{"really approve CALL" + resume + " | cat"},
		{"HINT"},
		{"eval \"$(really pending --json --state STATE | sed 's/.*\"approve\":\"remit \\([^\"]*\\)\".*/really \\1/') --resume --policy POLICY\""},
		{"really approval allow-unattended --state STATE", alone("approve CALL" + resume)},
		{"echo '{\"unattended\":true}' > STATE/approval.json; chmod 600 STATE/approval.json", alone("approve CALL" + resume)},
		{"SAME really approve CALL" + resume},
	} {
		p := emptyTarget(t)
		hint := asker.asks(p, "a.txt")
		found := regexp.MustCompile(`approve remit (approve .*)`).FindStringSubmatch(hint)
		require.NotNil(t, found, hint)
		require.LessOrEqual(t, len(way), 2)
		for _, line := range way {
			in := person
			if same, ok := strings.CutPrefix(line, "SAME "); ok {
				in, line = asker, same
			}
			line = strings.NewReplacer("CALL", p.call, "PREFIX", p.call[:7], "POLICY", p.policy, "STATE", p.state, "WORKSPACE", p.workspace,
				"DIGEST", p.digest(t, p.call), "HINT", "really "+strings.TrimSpace(found[1])).Replace(line)
			code, out := in.types(line)
			require.Zero(t, code, "way %d: %s: %s", i+1, line, out)
		}
		require.FileExists(t, filepath.Join(p.workspace, "a.txt"), "way %d", i+1)
		p.journal(t, func(j journal.Journal) {
			_, c, err := revert.LoadCall(t.Context(), j, p.call)
			require.NoError(t, err)
			require.Equal(t, revert.PhaseDone, c.Phase)
		})
	}
}
