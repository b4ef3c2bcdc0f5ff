package files_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	handle "github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin/internal/files"
)

// trap is a way to have the user's git run code, by calls of file tools alone.
type trap struct {
	before string // a script of the user, outside of remit
	calls  []call
	victim string // what the user runs afterwards
	reason string // words of the question
}

type call struct {
	tool string
	args tool.Args
}

func write(path, content string) call {
	return call{"file_write", tool.Args{"path": path, "content": content, "mode": "0755"}}
}

const (
	monitor = "[core]\n\trepositoryformatversion = 0\n\tworktree = ..\n\tbare = false\n\tfsmonitor = \"touch $MARK; echo\"\n"
	watch   = "[core]\n\tfsmonitor = \"touch $MARK; echo\"\n"
	hook    = "#!/bin/sh\ntouch $MARK\n"
	commit  = "git commit -q --allow-empty -m x"
	head    = "ref: refs/heads/main\n"
)

var traps = map[string]trap{
	"bare repository": {"", []call{
		{"dir_create", tool.Args{"path": "st/objects"}}, {"dir_create", tool.Args{"path": "st/refs"}}, write("st/config", monitor), write("st/HEAD", head),
	}, "git -C st status", "HEAD"},
	"head first": {"", []call{
		write("HEAD2", head),
		{"dir_create", tool.Args{"path": "st/objects"}},
		{"dir_create", tool.Args{"path": "st/refs"}},
		{"file_copy", tool.Args{"from": "HEAD2", "to": "st/HEAD"}},
		write("st/config", monitor),
	}, "git -C st status", "HEAD"},
	"words after a commit": {"", []call{
		{"dir_create", tool.Args{"path": "st/objects"}}, {"dir_create", tool.Args{"path": "st/refs"}}, write("st/config", monitor), write("st/HEAD", strings.Repeat("01", 20)+" is a commit"),
	}, "git -C st status", "HEAD"},
	"folder moved": {"", []call{
		{"dir_create", tool.Args{"path": "a/x/objects"}},
		{"dir_create", tool.Args{"path": "a/x/refs"}},
		write("a/x/config", monitor), write("a/x/H", head),
		{"file_move", tool.Args{"from": "a/x/H", "to": "a/x/HEAD"}},
		{"file_move", tool.Args{"from": "a/x", "to": "st"}},
	}, "git -C st status", "HEAD"},
	"edited into one": {"git init -q --bare st; echo no > st/HEAD", []call{
		write("st/config", monitor), {"file_edit", tool.Args{"path": "st/HEAD", "old": "no", "new": head}},
	}, "git -C st status", "HEAD"},
	"hooks path": {"git init -q .; git config core.hooksPath ci/hooks; mkdir -p ci/hooks", []call{write("ci/hooks/pre-commit", hook)}, commit, "runs this hook"},
	"hooks path moved to": {"git init -q .; git config core.hooksPath ci/hooks; mkdir ci", []call{
		{"dir_create", tool.Args{"path": "h"}}, write("h/pre-commit", hook), {"file_move", tool.Args{"from": "h", "to": "ci/hooks"}},
	}, commit, "runs this hook"},
	"configuration of another name": {"git init -q --separate-git-dir gd .", []call{
		{"file_edit", tool.Args{"path": "gd/config", "old": "[core]", "new": "[core]\n\tfsmonitor = \"touch $MARK; echo\""}},
	}, "git status", "core.fsmonitor"},
	"hook of another name":   {"git init -q --separate-git-dir gd .", []call{write("gd/hooks/pre-commit", hook)}, commit, "runs this hook"},
	"repository with a name": {"git init -q --bare lib.git", []call{write("lib.git/config", monitor)}, "git -C lib.git status", "core.fsmonitor"},
	"worktree": {"git init -q --separate-git-dir gd .; " + commit + "; git worktree add -q wt", []call{
		write("gd/worktrees/wt/config.worktree", "[core]\n\tfsmonitor = \"touch $MARK; echo\"\n"), {"file_edit", tool.Args{"path": "gd/config", "old": "[core]", "new": "[extensions]\n\tworktreeConfig = true\n[core]"}},
	}, "git -C wt status", "core.fsmonitor"},
	"other folder of a repository": {"git init -q --separate-git-dir gd .", []call{
		{"file_copy", tool.Args{"from": "gd", "to": "evil"}}, write("gd/commondir", "../evil\n"),
	}, "", "HEAD"},
	"commondir": {"git init -q --separate-git-dir gd .; cp -r gd evil; rm evil/HEAD", []call{
		write("evil/config", monitor), write("gd/commondir", "../evil\n"),
	}, "git status", "another folder"},
	"included":     {"git init -q .; git config include.path ../.conf; touch .conf", []call{write(".conf", "[core]\n\tfsmonitor = \"touch $MARK; echo\"\n")}, "git status", "core.fsmonitor"},
	"linked hooks": {"git init -q .; rm -rf .git/hooks; mkdir h; ln -s ../h .git/hooks", []call{write("h/pre-commit", hook)}, commit, "runs this hook"},
	"linked hook":  {"git init -q .; mkdir h; echo x > h/check; ln -s ../../h/check .git/hooks/pre-commit", []call{write("h/check", hook)}, commit, "runs this hook"},
	"linked config": {"git init -q .; mv .git/config cfg; ln -s ../cfg .git/config", []call{
		{"file_edit", tool.Args{"path": "cfg", "old": "[core]", "new": "[core]\n\tfsmonitor = \"touch $MARK; echo\""}},
	}, "git status", "core.fsmonitor"},
	"hooks below a linked folder":       {"git init -q .; git config core.hooksPath ld/hk; mkdir -p rd/hk; ln -s rd ld", []call{write("rd/hk/pre-commit", hook)}, commit, "runs this hook"},
	"hooks below two links":             {"git init -q .; git config core.hooksPath a/b/hk; mkdir -p rd/hk x; ln -s x a; ln -s ../rd x/b", []call{write("rd/hk/pre-commit", hook)}, commit, "runs this hook"},
	"hooks by a link outside":           {"git init -q .; mkdir -p hk; ln -s ws ../out; ln -s out ../out2; git config core.hooksPath $PWD/../out2/hk", []call{write("hk/pre-commit", hook)}, commit, "runs this hook"},
	"hooks of a linked folder":          {"git init -q .; mkdir -p rd/info; mv .git/hooks rd/hooks; ln -s ../rd .git/gd; ln -s gd/hooks .git/hooks", []call{write("rd/hooks/pre-commit", hook)}, commit, "runs this hook"},
	"hooks where git is run":            {"git init -q .; git config core.hooksPath hk; mkdir -p .git/x w; ln -s ../w .git/hk", []call{write("w/pre-auto-gc", hook)}, "cd .git; git hook run pre-auto-gc", "runs this hook"},
	"linked hook below a linked folder": {"git init -q .; mkdir -p rd; echo x > rd/check; ln -s rd ld; ln -s ../../ld/check .git/hooks/pre-commit", []call{write("rd/check", hook)}, commit, "runs this hook"},
	"included from a linked folder":     {"git init -q .; git config include.path ../ld/inc; mkdir rd; touch rd/inc; ln -s rd ld", []call{write("rd/inc", watch)}, "git status", "core.fsmonitor"},
	"included by a link outside":        {"git init -q .; ln -s ws ../out; git config include.path $PWD/../out/rd/inc; mkdir rd; touch rd/inc", []call{write("rd/inc", watch)}, "git status", "core.fsmonitor"},
	"included above a link":             {"git init -q .; mkdir -p d e; ln -s ../d e/l; git config include.path ../e/l/../d/b; touch d/b", []call{write("d/b", watch)}, "git status", "core.fsmonitor"},
	"included from a linked file": {"git init -q .; mkdir c; mv .git/config c/cfg; ln -s ../c/cfg .git/config; git config -f c/cfg include.path ../rd/one; mkdir rd ld; git config -f rd/x include.path two; ln -s ../rd/x ld/one; ln -sf ../ld/one rd/one; touch rd/two", []call{
		write("rd/two", watch),
	}, "git status", "core.fsmonitor"},
	"common folder below a link": {
		"git init -q .; mkdir -p rd/cm/objects rd/cm/refs .git/worktrees/w wt; touch rd/cm/config; ln -s rd ld; " +
			"echo ref: refs/heads/m > .git/worktrees/w/HEAD; echo ../../../ld/cm > .git/worktrees/w/commondir; echo \"$PWD/wt/.git\" > .git/worktrees/w/gitdir; echo \"gitdir: $PWD/.git/worktrees/w\" > wt/.git",
		[]call{write("rd/cm/config", watch)},
		"git -C wt status", "core.fsmonitor",
	},
	"attributes that are a link": {"git init -q .; git config filter.x.clean 'touch ../mark; cat'; touch real f; ln -s ../../real .git/info/attributes", []call{
		{"file_write", tool.Args{"path": "real", "content": "* filter=x\n"}},
	}, "git add f", "filters"},
	"attributes of the configuration": {"git init -q .; git config filter.x.clean 'touch ../mark; cat'; touch f; mkdir rd; ln -s rd ld; git config core.attributesFile ld/at", []call{
		{"file_write", tool.Args{"path": "rd/at", "content": "* filter=x\n"}},
	}, "git add f", "filters"},
	"submodule with hooks elsewhere": {"git init -q .; git init -q ../lib; git -C ../lib " + commit[4:] + "; git -c protocol.file.allow=always submodule --quiet add ../lib sub/m; git -C sub/m config core.hooksPath ../../ld/hk; mkdir -p rd/hk; ln -s rd ld", []call{
		write("rd/hk/pre-commit", hook),
	}, "git -C sub/m " + commit[4:], "runs this hook"},
	"git folder below a link":              {"mkdir -p rd; git init -q --separate-git-dir rd/gd .; ln -s rd ld; echo 'gitdir: ld/gd' > .git; git config core.hooksPath ld/hk; mkdir rd/hk", []call{write("rd/hk/pre-commit", hook)}, commit, "runs this hook"},
	"bare repository with hooks elsewhere": {"git init -q --bare st; git -C st config core.hooksPath ld/hk; mkdir -p st/rd/hk; ln -s rd st/ld", []call{write("st/rd/hk/post-update", hook)}, "git -C st hook run post-update", "runs this hook"},
	"unknown place": {"git init -q ../main; git -C ../main " + commit[4:] + "; git -C ../main config core.hooksPath ci; git -C ../main worktree add -q -f ../ws; mkdir ci", []call{
		write("ci/pre-commit", hook),
	}, commit, "runs this hook"},
}

type gitted struct {
	dir, mark string
	rt        *agent.Runtime
	s         *agent.Session
	shell     func(script string) // of the user
}

// newGitSetup is a workspace in which the user has git, and a file that only code that
// git runs makes.
func newGitSetup(t *testing.T, opts ...agent.Option) gitted {
	t.Helper()
	return newGitSetupAt(t, "ws", opts...)
}

// newGitSetupAt is newGitSetup whose root has another name, which can be a link.
func newGitSetupAt(t *testing.T, name string, opts ...agent.Option) gitted {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("this machine has no git")
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	dir, home := filepath.Join(top, "ws"), filepath.Join(top, "home")
	mark := filepath.Join(top, "mark")
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.Mkdir(home, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\n\tname = P\n\temail = p@example.com\n[init]\n\tdefaultBranch = main\n"), 0o600))
	shell := func(script string) {
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + filepath.Dir(git) + ":/usr/bin:/bin", "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C"}
		out, err := cmd.CombinedOutput()
		t.Logf("%s: %v %s", script, err, out)
	}
	if name != "ws" {
		require.NoError(t, os.Symlink("ws", filepath.Join(top, name)))
	}
	opts = append([]agent.Option{agent.Tools(append(files.Tools(), own(t))...), agent.Root("workspace", filepath.Join(top, name)), agent.Log(slog.New(slog.DiscardHandler))}, opts...)
	rt, err := agent.New(opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	s, err := rt.Session(t.Context(), perm.Principal{ID: "coder"})
	require.NoError(t, err)
	return gitted{dir, mark, rt, s, shell}
}

// at is the arguments of a call with the name of the mark in them.
func (c call) at(mark string) tool.Args {
	out := tool.Args{}
	for key, value := range c.args {
		if text, ok := value.(string); ok {
			value = strings.ReplaceAll(text, "$MARK", mark)
		}
		out[key] = value
	}
	return out
}

// TestGit: file tools make git run no code unless a person approves it. If one does,
// the code runs: each trap is a real one.
func TestGit(t *testing.T) {
	for name, tt := range traps {
		t.Run(name, func(t *testing.T) {
			w := newGitSetup(t)
			w.shell(tt.before)
			tx, err := w.s.Begin(t.Context())
			require.NoError(t, err)
			refused := ""
			for _, c := range tt.calls {
				o, err := tx.Invoke(t.Context(), c.tool, c.at(w.mark))
				if err != nil {
					require.ErrorIs(t, err, tool.ErrDenied, o.Text)
					refused += o.Error.Why
				}
			}
			require.Contains(t, refused, tt.reason)
			require.NoError(t, tx.Commit(t.Context()))
			w.shell(tt.victim)
			require.NoFileExists(t, w.mark)
		})
		if tt.victim == "" {
			continue
		}
		t.Run(name+", approved", func(t *testing.T) {
			shown := ""
			w := newGitSetup(t, agent.Approver(ctxperm.ApproverFunc(func(_ context.Context, a ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
				shown += a.Preview
				return ctxperm.Approve("boss"), nil
			})))
			w.shell(tt.before)
			tx, err := w.s.Begin(t.Context())
			require.NoError(t, err)
			for _, c := range tt.calls {
				o, err := tx.Invoke(t.Context(), c.tool, c.at(w.mark))
				require.NoError(t, err, o.Text)
			}
			require.NotEmpty(t, shown)
			require.NoError(t, tx.Commit(t.Context()))
			w.shell(tt.victim)
			require.FileExists(t, w.mark)
			_, err = w.s.Revert(t.Context(), tx.ID(), revert.Options{})
			require.NoError(t, err)
		})
	}
}

// TestGitRootThroughLink: the user works in a folder that a link leads to, and names it so.
func TestGitRootThroughLink(t *testing.T) {
	for name, before := range map[string]string{
		"by the link":   "git init -q .; mkdir hk; git config core.hooksPath $PWD/../out/hk",
		"by the folder": "git init -q .; mkdir hk; git config core.hooksPath $PWD/hk",
	} {
		w := newGitSetupAt(t, "out")
		w.shell(before)
		tx, err := w.s.Begin(t.Context())
		require.NoError(t, err)
		c := write("hk/pre-commit", hook)
		o, err := tx.Invoke(t.Context(), c.tool, c.args)
		require.ErrorIs(t, err, tool.ErrDenied, name)
		require.Contains(t, o.Error.Why, "runs this hook", name)
	}
}

// TestGitUndone: a revert brings a HEAD back unasked, so that its removal is asked for.
func TestGitUndone(t *testing.T) {
	w := newGitSetup(t)
	w.shell("git init -q --bare st; mkdir -p w/h; git init -q w; git -C w config core.hooksPath h")
	tx, err := w.s.Begin(t.Context())
	require.NoError(t, err)
	for _, args := range []tool.Args{{"path": "st/HEAD"}, {"path": "st", "recursive": true}} {
		o, err := tx.Invoke(t.Context(), "file_delete", args)
		require.ErrorIs(t, err, tool.ErrDenied)
		require.Contains(t, o.Error.Why, "HEAD")
	}
	_, err = tx.Invoke(t.Context(), "file_write", tool.Args{"path": "st/HEAD", "content": "ref: refs/heads/other\n"})
	require.NoError(t, err)
	o, err := tx.Invoke(t.Context(), "file_move", tool.Args{"from": "st", "to": "other"})
	require.ErrorIs(t, err, tool.ErrDenied, o.Text)
}

// TestGitFree: what git does not run is not asked for.
func TestGitFree(t *testing.T) {
	w := newGitSetup(t)
	w.shell("git init -q .; echo x > src")
	tx, err := w.s.Begin(t.Context())
	require.NoError(t, err)
	for _, c := range []call{
		write("config", "anything"), write("HEAD", "notes on heads"),
		{"dir_create", tool.Args{"path": "hooks"}},
		write("hooks/config", "y"), write("hooks/pre-commit", "x"), write("update", "x"), write(".gitattributes", "* text"),
		write(".gitconfig", "[user]\n\tname = x\n"),
		{"file_move", tool.Args{"from": "HEAD", "to": "TAIL"}},
		{"file_copy", tool.Args{"from": "hooks", "to": "more"}},
		{"file_delete", tool.Args{"path": "hooks", "recursive": true}},
		{"dir_create", tool.Args{"path": "refs/objects"}},
	} {
		o, err := tx.Invoke(t.Context(), c.tool, c.args)
		require.NoError(t, err, "%v %s", c, o.Text)
	}
}

// own is a tool that a user wrote. It makes nothing of errors.
func own(t *testing.T) tool.Tool {
	t.Helper()
	made, err := tool.FromSpec(tool.Spec{
		Name: "own", Version: "1", Description: "Do what a script says.", Confinement: tool.Handles, EffectClass: effect.Reversible, Destination: tool.NoDestination,
		Input: json.RawMessage(`{"type":"object","properties":{"do":{"type":"array","items":{"type":"array","items":{"type":"string"}}}},"required":["do"]}`),
		Needs: []perm.ResourceAccess{{Action: perm.Read, Resource: "file://*/**"}, {Action: perm.Write, Resource: "file://*/**"}, {Action: perm.Delete, Resource: "file://*/**"}, {Action: perm.List, Resource: "file://*/**"}},
		Execute: func(ctx context.Context, tc ctxperm.ToolContext, raw json.RawMessage) (tool.Result, error) {
			var in struct {
				Do [][]string `json:"do"`
			}
			if err := json.Unmarshal(raw, &in); err != nil {
				return tool.Result{}, err
			}
			f, err := handle.Open(tc, "workspace")
			if err != nil {
				return tool.Result{}, err
			}
			for _, step := range in.Do {
				switch step[0] {
				case "write":
					_ = f.Write(ctx, step[1], []byte(step[2]), handle.WriteOptions{MakeParents: true})
				case "append":
					_ = f.Append(ctx, step[1], []byte(step[2]))
				case "chmod":
					_ = f.Chmod(ctx, step[1], 0o755)
				case "link":
					_ = f.Symlink(ctx, step[2], step[1])
				}
			}
			return tool.Text("done"), nil
		},
	})
	require.NoError(t, err)
	return made
}

// TestGitOfOwnTools checks that the rules for Git files also hold for the tool
// of a user, even if it ignores errors. The runtime reverts what the call did
// before.
func TestGitOfOwnTools(t *testing.T) {
	const user = "git init -q .; git config core.hooksPath a/b; git init -q --bare gd; mkdir -p h; echo x > h/pre-commit; mkdir a; echo > a/c; git init -q w; git -C w config core.hooksPath h; mkdir w/h; echo x > w/h/pre-push"
	for name, do := range map[string][][]string{
		"append":           {{"append", "gd/config", "[core]\n\tfsmonitor = x\n"}},
		"chmod":            {{"chmod", "w/h/pre-push"}},
		"link":             {{"link", "a/b", "../h"}},
		"link to a HEAD":   {{"link", "h/HEAD", "refs/heads/main"}},
		"link of a config": {{"link", "gd/config.worktree", "../h"}},
		"after others":     {{"write", "x/y", "z"}, {"write", "a/b/post-commit", "x"}, {"write", "x/z", "z"}},
	} {
		for _, on := range []string{"deny", "wait"} {
			var w gitted
			opts := []agent.Option{}
			if on == "wait" {
				opts = append(opts, agent.SuspendForApproval(), agent.OnWaiting(func(ask ctxperm.ApprovalRequest) {
					if name == "after others" { // it changed something, so it waits in place
						if err := w.rt.Answer(t.Context(), agent.Answer{Call: ask.Call, By: "boss", RequestDigest: ask.Digest}); err != nil {
							t.Error(err) // not require: this is not the goroutine of the test
						}
					}
				}))
			}
			w = newGitSetup(t, opts...)
			w.shell(user)
			tx, err := w.s.Begin(t.Context())
			require.NoError(t, err)
			o, err := tx.Invoke(t.Context(), "own", tool.Args{"do": do})
			if on == "wait" && name != "after others" {
				require.Equal(t, tool.StatusPending, o.Status, "%s: %s", name, o.Text)
			} else {
				require.ErrorIs(t, err, tool.ErrDenied, "%s: %s", name, o.Text)
			}
			o, err = tx.Invoke(t.Context(), "file_list", tool.Args{"path": "."})
			require.NoError(t, err)
			require.NotContains(t, o.Text, `"x"`)
		}
	}
}

// TestGitWaits: a call of a file tool waits with its difference, and once approved it
// makes just that.
func TestGitWaits(t *testing.T) {
	for name, tt := range map[string]struct {
		now  string
		why  error
		then string
	}{
		"same":    {"[core]\n", nil, "[core]\n\tpager = sh\n"},
		"changed": {"[core]\n\tx = y\n", tool.ErrDenied, "[core]\n\tx = y\n"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newGitSetup(t, agent.SuspendForApproval())
			w.shell("git init -q --bare gd; echo '[core]' > gd/config")
			config := filepath.Join(w.dir, "gd/config")
			tx, err := w.s.Begin(t.Context())
			require.NoError(t, err)
			o, err := tx.Invoke(t.Context(), "file_edit", tool.Args{"path": "gd/config", "old": "[core]", "new": "[core]\n\tpager = sh"})
			require.ErrorIs(t, err, tool.ErrPending, o.Text)
			_, c, err := revert.LoadCall(t.Context(), w.rt.Journal(), o.Call)
			require.NoError(t, err)
			require.Contains(t, c.Asked.Preview, "pager = sh")
			require.NoError(t, os.WriteFile(config, []byte(tt.now), 0o600))
			require.NoError(t, w.rt.Answer(t.Context(), agent.Answer{Call: o.Call, Approved: true, By: "boss", RequestDigest: c.Asked.Digest}))
			o, err = tx.Resume(t.Context(), o.Call)
			require.ErrorIs(t, err, tt.why, o.Text)
			data, err := os.ReadFile(config)
			require.NoError(t, err)
			require.Equal(t, tt.then, string(data))
		})
	}
}

// TestGitAnswerTooLate: an approver who takes longer than the call may leaves nothing.
func TestGitAnswerTooLate(t *testing.T) {
	w := newGitSetup(t, agent.Limits(tool.Limits{Timeout: 10 * time.Millisecond}), agent.Approver(ctxperm.ApproverFunc(func(ctx context.Context, _ ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
		<-ctx.Done()
		return ctxperm.Approve("boss"), nil
	})))
	tx, err := w.s.Begin(t.Context())
	require.NoError(t, err)
	o, err := tx.Invoke(t.Context(), "file_write", tool.Args{"path": "HEAD", "content": head})
	require.Error(t, err)
	require.Contains(t, []tool.Status{tool.StatusDenied, tool.StatusTimeout}, o.Status, o.Text)
	require.NoFileExists(t, filepath.Join(w.dir, "HEAD"))
	t.Log(o.Status, o.Text, o.Error.Why)
}

// TestGitTooLarge: what is too large to be looked at counts as what runs code.
func TestGitTooLarge(t *testing.T) {
	w := newGitSetup(t)
	w.shell("git init -q --bare gd; head -c 2000000 /dev/zero | tr '\\0' '#' >> gd/config; echo >> gd/config")
	tx, err := w.s.Begin(t.Context())
	require.NoError(t, err)
	for _, c := range []call{
		write("HEAD", strings.Repeat("x", 2<<20)), write("gd/config", "[core]\n"), {"file_delete", tool.Args{"path": "gd/config"}},
	} {
		o, err := tx.Invoke(t.Context(), c.tool, c.args)
		require.ErrorIs(t, err, tool.ErrDenied, o.Text)
	}
}
