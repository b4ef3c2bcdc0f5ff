package lineage_test

import (
	"encoding/json"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/lineage"
)

// processTree builds chains of invented processes: each line is a PID's parent and
// attributes.
type processTree map[int]lineage.Link

func (tr processTree) chain(pid int) lineage.Chain {
	c := lineage.Chain{Boot: "b", Namespaces: "n"}
	for pid != 0 {
		l, ok := tr[pid]
		if !ok {
			break
		}
		l.PID = pid
		if l.UID == 0 {
			l.UID = 1000
		}
		if l.Group == "" {
			l.Group = "tab1"
		}
		c.Links = append(c.Links, l)
		pid = l.Parent
	}
	return c
}

func of(parent int, name string, start uint64, more ...func(*lineage.Link)) lineage.Link {
	l := lineage.Link{Process: lineage.Process{Start: start, Name: name}, Parent: parent}
	for _, m := range more {
		m(&l)
	}
	return l
}

func shell(session int) func(*lineage.Link) {
	return func(l *lineage.Link) { l.Terminal, l.Jobs, l.Session, l.Job = true, true, session, session }
}

func at(session, job int) func(*lineage.Link) {
	return func(l *lineage.Link) { l.Terminal, l.Session, l.Job = true, session, job }
}

func group(name string) func(*lineage.Link) { return func(l *lineage.Link) { l.Group = name } }

func root(l *lineage.Link) { l.UID = -1 }

// desktop is a person's machine: an agent in one tab of a terminal, its server
// and shells, and the other processes.
func desktop() processTree {
	return processTree{
		1:   of(0, "systemd", 1, root, group("init")),
		50:  of(1, "systemd", 10, group("user")),
		60:  of(50, "gnome-terminal", 20, group("terminal")),
		100: of(60, "bash", 30, shell(100)),
		200: of(100, "claude", 40, at(100, 200)),
		300: of(200, "remit", 50, at(100, 200)), // asks
		// Below the agent.
		400: of(200, "bash", 60, at(100, 200)),
		401: of(400, "remit", 61, at(100, 200)),
		410: of(400, "script", 62, at(100, 200)),
		411: of(410, "remit", 63, at(411, 411)),
		420: of(300, "server", 64),
		421: of(420, "remit", 65),
		// A shell that ignores the signals of job control, and a server below
		// it; another of the person, in a nested shell.
		430: of(410, "bash", 64, shell(430)),
		431: of(430, "remit", 65, at(430, 431)), // asks
		625: of(620, "remit", 85, at(620, 625)), // asks
		626: of(620, "remit", 90, at(620, 626)),
		// Started by the agent and detached: it asks, and nothing shows for
		// which agent.
		530: of(50, "remit", 66, group("tab1")),
		// Detached before the server started, and after the agent did.
		540: of(50, "script", 45, at(540, 540)),
		541: of(540, "bash", 46, shell(541)),
		542: of(541, "remit", 90, at(541, 542)),
		// Detached by a double fork: with a terminal of its own, without one,
		// in the job of the agent.
		500: of(50, "script", 70, at(500, 500)),
		501: of(500, "remit", 71, at(501, 501)),
		510: of(50, "remit", 70, at(100, 200)),
		520: of(1, "tmux", 70),
		521: of(520, "bash", 71, shell(521)),
		522: of(521, "remit", 72, at(521, 522)),
		// Before the agent let the asking process go: a program that holds a
		// terminal by itself and ignores the signals of job control.
		550: of(50, "python", 60, shell(550)),
		551: of(550, "remit", 90, at(550, 551)),
		560: of(1, "python", 60, shell(560)),
		561: of(560, "remit", 90, at(560, 561)),
		// The person: the same tab, another tab, a nested shell, a login over the network, a desktop's other terminal, a new one.
		600: of(100, "remit", 90, at(100, 600)),
		610: of(60, "zsh", 80, shell(610), group("tab2")),
		611: of(610, "remit", 90, at(610, 611), group("tab2")),
		620: of(100, "bash", 80, shell(620)),
		621: of(620, "remit", 90, at(620, 621)),
		660: of(634, "remit", 90, at(633, 660)),
		633: of(630, "sshd", 79),
		634: of(633, "bash", 80, shell(633)),
		630: of(1, "sshd", 5, root, group("ssh")),
		631: of(630, "bash", 80, shell(631), group("session-9")),
		632: of(631, "remit", 90, at(631, 632), group("session-9")),
		640: of(50, "konsole", 80, group("konsole")),
		641: of(640, "bash", 81, shell(641), group("konsole")),
		642: of(641, "remit", 90, at(641, 642), group("konsole")),
		650: of(1, "tmux", 25), // began before the call asked
		651: of(650, "bash", 80, shell(651)),
		652: of(651, "remit", 90, at(651, 652)),
	}
}

// container is a container whose first process is the agent at its terminal;
// others enter it from outside.
func container(first func(*lineage.Link)) processTree {
	return processTree{
		1:   of(0, "first", 1, first),
		200: of(1, "claude", 40, at(1, 200)),
		300: of(200, "remit", 50, at(1, 200)),
		400: of(1, "remit", 60, at(1, 400)),
		410: of(1, "script", 60, at(1, 200)),
		411: of(410, "remit", 61, at(411, 411)),
		420: of(1, "remit", 60, at(1, 200)),
		500: of(0, "bash", 70, shell(500)),
		501: of(500, "remit", 71, at(500, 501)),
	}
}

// TestBars checks that every process below the agent is barred, and that a
// person is not.
func TestBars(t *testing.T) {
	for _, tt := range []struct {
		name     string
		tree     processTree
		asks, is int
		why      string // empty: it may answer
	}{
		{"a shell of the agent", desktop(), 300, 401, "below claude (process 200), which started the one that asked"},
		{"at a terminal of its own", desktop(), 300, 411, "below claude (process 200)"},
		{"a server of the gateway", desktop(), 300, 421, "below remit (process 300), which asked"},
		{"the asking process itself", desktop(), 300, 300, "below remit (process 300), which asked"},
		{"cut loose at a terminal of its own", desktop(), 300, 501, "script (process 500), above this process, began after"},
		{"cut loose in the job of the agent", desktop(), 300, 510, "in the job or the session of claude"},
		{"a multiplexer that the agent started", desktop(), 300, 522, "tmux (process 520), above this process, began after"},
		{"the same tab", desktop(), 300, 600, ""},
		{"another tab", desktop(), 300, 611, ""},
		{"a shell in a shell", desktop(), 300, 621, ""},
		{"a login", desktop(), 300, 632, ""},
		{"another terminal, opened since", desktop(), 300, 642, ""},
		{"a multiplexer from before", desktop(), 300, 652, ""},
		{"a run of the person, from the same shell", desktop(), 600, 621, ""},

		{"cut loose before the server started", desktop(), 300, 542, "script (process 540), above this process, began after claude"},
		{"a server below an interactive shell of the agent", desktop(), 431, 401, "below bash (process 400), which started the one that asked"},
		{"the same shell of the agent", desktop(), 431, 430, "below bash (process 430)"},
		{"that server, and a person", desktop(), 431, 600, ""},
		{"a run of the person in a shell in a shell", desktop(), 625, 626, ""},
		{"asked by what was let go: a shell of the agent", desktop(), 530, 401, "it can be bash (process 400), above"},
		{"asked by what was let go: at a terminal of its own", desktop(), 530, 431, "it can be script (process 410), above this process"},
		{"asked by what was let go: a terminal that a program holds by itself", desktop(), 530, 551, "it can be python (process 550), above this process"},
		{"asked by what was let go: the same below the first process", desktop(), 530, 561, "it can be python (process 560), above this process"},
		{"asked by what was let go: the person in the same control group", desktop(), 530, 600, "it can be gnome-terminal (process 60)"},
		{"asked by what was let go: a login in the same control group", desktop(), 530, 660, ""},
		{"asked by what was let go: the person elsewhere", desktop(), 530, 642, ""},

		{"a container: entered", container(at(1, 1)), 300, 501, ""},
		{"a container that is the agent: below it", container(at(1, 1)), 300, 400, "below first (process 1)"},
		{"a container that is the agent: cut loose", container(at(1, 1)), 300, 411, "below first (process 1)"},
		{"a container that is a shell: the person", container(shell(1)), 300, 400, ""},
		{"a container that is a shell: cut loose", container(shell(1)), 300, 411, "script (process 410), above this process"},
		{"a container that is a shell: in the job of the agent", container(shell(1)), 300, 420, "in the job or the session of claude"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			why := tt.tree.chain(tt.asks).AskingProcess().Bars(tt.tree.chain(tt.is))
			if tt.why == "" {
				require.Empty(t, why)
				return
			}
			require.Contains(t, why, tt.why)
		})
	}
}

func TestBarsWithoutAChain(t *testing.T) {
	c := desktop().chain(300)
	a := c.AskingProcess()
	require.Contains(t, a.Bars(lineage.Chain{}), "are unknown")
	require.Contains(t, lineage.AskingProcess{Unknown: "why"}.Bars(c), "why")
	require.Empty(t, lineage.AskingProcess{}.Bars(c), "a system that does not tell")
	require.Empty(t, lineage.Chain{}.AskingProcess())
	c.Namespaces = "others"
	require.Contains(t, a.Bars(c), "cannot be compared")
	c.Boot = "later"
	require.Empty(t, a.Bars(c), "the machine was started anew")
}

// TestAskerOfAService checks that, without a person's shell, the record ends
// with the process that the session manager started.
func TestAskerOfAService(t *testing.T) {
	tr := desktop()
	tr[700] = of(50, "cursor", 40, group("app"))
	tr[701] = of(700, "remit", 41, group("app"))
	tr[710] = of(1, "remit", 40, group("remit.service"))
	names := func(pid int) (out []string) {
		for _, p := range tr.chain(pid).AskingProcess().Processes {
			out = append(out, p.Name)
		}
		return out
	}
	require.Equal(t, []string{"remit", "cursor"}, names(701))
	require.Equal(t, []string{"remit"}, names(710))
	require.Equal(t, []string{"remit", "claude"}, names(300))
}

func TestOwn(t *testing.T) {
	c, err := lineage.Own()
	if runtime.GOOS != "linux" {
		require.ErrorIs(t, err, lineage.ErrUnknown)
		require.Nil(t, lineage.Record())
		return
	}
	require.NoError(t, err)
	require.Equal(t, os.Getpid(), c.Links[0].PID)
	require.Equal(t, os.Getppid(), c.Links[1].PID)
	require.NotEmpty(t, c.Boot)
	var a lineage.AskingProcess
	require.NoError(t, json.Unmarshal(lineage.Record(), &a))
	require.Equal(t, c.AskingProcess(), a)
	require.Contains(t, a.Bars(c), "which asked")
}
