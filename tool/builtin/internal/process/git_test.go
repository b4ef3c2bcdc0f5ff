package process_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	handle "github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// repository makes a repository with some history in the workspace, as a person
// would: outside the sandbox.
func repository(t *testing.T, dir string) {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("this machine has no git")
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", gitHistory)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + filepath.Dir(git) + ":/usr/bin:/bin", "HOME=" + t.TempDir(), "LANG=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1"}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}

// TestGitHidden: the answer names the hidden files that git took for deleted, which git
// add says nothing of, and what it says to do redoes them.
func TestGitHidden(t *testing.T) {
	w := newProgramSetup(t)
	repository(t, w.dir)
	git, err := exec.LookPath("git")
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", "mkdir -p x/.ssh src; echo s > .env; echo s > src/.env; echo s > x/.ssh/config; git add -f .env src/.env x/.ssh/config; git commit -qm secrets")
	cmd.Dir = w.dir
	cmd.Env = []string{"PATH=" + filepath.Dir(git) + ":/usr/bin:/bin", "HOME=" + t.TempDir(), "LANG=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1"}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	_, o := w.shell(t, "echo more >> a; git add a; git status >/dev/null")
	require.NotContains(t, o.Text, "hidden")
	txn, o := w.shell(t, "git add -A")
	for _, name := range []string{".env", "src/.env", "x/.ssh"} {
		require.Contains(t, o.Text, "\"workspace/"+name+"\" is hidden from programs by the policy, so that git took it for deleted")
		require.Contains(t, o.Text, "git reset -- "+name)
	}
	_, err = w.s.Revert(t.Context(), txn, revert.Options{})
	require.NoError(t, err)
	_, o = w.shell(t, "git add -A; git reset -q -- .env src/.env x/.ssh; git diff --cached --name-only")
	require.NotContains(t, o.Text, "took it for deleted")
	_, o = w.shell(t, "git add -A src")
	require.Contains(t, o.Text, "\"workspace/src/.env\" is hidden")
	require.NotContains(t, o.Text, "\"workspace/.env\"")
}

const gitHistory = `
git init -q -b main .
git config user.name Person
git config user.email person@example.com
mkdir -p src/deep
echo one > a; echo two > b; echo three > src/c; echo four > src/deep/d; ln -s a link; printf '#!/bin/sh\n' > run; chmod +x run
git add -A; git commit -qm first
echo more >> a; git commit -qam second
git checkout -qb side; echo side > s; git add s; git commit -qm side; git checkout -q main
echo main > m; git add m; git commit -qm third
git tag v1
echo ignored > .gitignore; git add .gitignore; git commit -qm ignore; echo x > ignored
`

// gitScripts is what git users run. Each must work under the policy that holds when
// none is given, without an approval.
var gitScripts = map[string]string{
	"look":        "git status --short; git diff; git log --oneline --all --graph; git ls-files | grep -q src/c; git show HEAD; git blame a; git grep one",
	"status":      "touch a; git status; git diff --exit-code",
	"diff":        "echo changed >> a; ! git diff --exit-code > out; grep -q '^+changed' out",
	"commit":      "echo new > n; echo x >> a; git add n; git commit -qam fourth; git log --format='%an <%ae>' -1 | grep -q Person",
	"amend":       "echo y >> a; git commit -qa --amend -m amended",
	"rebase":      "git checkout -q side; git rebase -q main; git log --oneline | wc -l",
	"interactive": "GIT_SEQUENCE_EDITOR=true git rebase -q -i HEAD~2; git rebase -i HEAD~2 --exec true 2>/dev/null < /dev/null || GIT_SEQUENCE_EDITOR=true git rebase -i HEAD~2 --exec true",
	"squash":      "GIT_EDITOR=true GIT_SEQUENCE_EDITOR='sed -i 2s/pick/squash/' git rebase -q -i HEAD~2",
	"conflict":    "git checkout -q side; echo other > m; git add m; git commit -qm other; ! git rebase main; git status; git diff --name-only --diff-filter=U | grep -q m",
	"merge":       "git merge -q --no-edit side; git log --merges --oneline | grep -q .",
	"squashed":    "git merge -q --squash side; git commit -qm squashed",
	"cherry":      "git cherry-pick side; git revert --no-edit HEAD",
	"tag":         "git tag v2; git tag -a v3 -m three; git tag -d v1",
	"branch":      "git branch topic; git branch -m topic renamed; git branch -D side; git branch feature/x",
	"tracking":    "git checkout -q -b tracked --track main; git branch -m tracked moved; git branch -D side; git checkout -q main; git branch -D moved",
	"reset":       "echo z >> a; rm b; git reset -q --hard HEAD~1",
	"soft":        "git reset -q --soft HEAD~2; git reset -q; git add -A; git commit -qm one",
	"clean":       "mkdir -p out/x; echo 1 > out/x/y; echo 2 > src/new; git clean -qfdx; test ! -e ignored",
	"checkout":    "echo w > a; git checkout -q -- a; git checkout -q side; git switch -q main; git restore --source=HEAD~1 a",
	"stash":       "echo st >> a; echo u > untracked; git stash -q -u; git stash list | grep -q .; git stash pop -q; git stash -q; git stash drop -q",
	"gc":          "git gc -q --prune=now; git count-objects -v",
	"repack":      "git repack -q -a -d; git prune; git pack-refs --all; git reflog expire --expire=now --all",
	"worktree":    "git worktree add -q wt side; echo in > wt/in; git -C wt add in; git -C wt commit -qm inside; git worktree list; git worktree remove wt",
	"worktree2":   "git worktree add -q -b other trees/other; echo in > trees/other/in; git worktree prune",
	"init":        "git init -q new; cd new; git config user.name N; git config user.email n@e; echo 1 > f; git add f; git commit -qm 1",
	"clone":       "git clone -q --no-hardlinks . inner; echo 1 > inner/f; git -C inner add f; git -C inner commit -qm 1; git -C inner fetch -q; git -C inner pull -q --rebase",
	"remove":      "git clone -q --no-hardlinks . inner; rm -rf inner; rm -rf .git",
	"submodule":   "git clone -q --no-hardlinks . lib; git -c protocol.file.allow=always submodule --quiet add ./lib sub; git commit -qm sub; git submodule --quiet deinit -f sub",
	"notes":       "git notes add -m note; git replace -f HEAD HEAD~1; git replace -d HEAD; git update-ref refs/x/y HEAD",
	"bisect":      "git bisect start HEAD HEAD~3; git bisect run true; git bisect reset",
	"sparse":      "git sparse-checkout set src; git sparse-checkout disable",
	"bundle":      "git bundle create -q all.bundle --all; git archive -o all.tar HEAD; git format-patch -q HEAD~1; git am -q 0001* || git am --abort",
	"mv":          "git mv a z; git mv src/c src/e; git rm -q b; git commit -qm moved",
	"apply":       "echo p >> a; git diff > p.patch; git checkout -q a; git apply p.patch; git apply --index -R p.patch || true",
	"fsck":        "git fsck; git verify-pack -v .git/objects/pack/*.idx || true; git index-pack --help >/dev/null 2>&1 || true",
	"samples":     "rm -rf .git/hooks; mkdir .git/hooks; rmdir .git/hooks; git status",
	"names":       "git checkout -qb config; git commit -q --allow-empty -m c; git checkout -qb hooks/pre-commit; git commit -q --allow-empty -m h; git tag config",
}

// person is a driver that names an author, as the command does.
func person(t *testing.T) agent.Option {
	t.Helper()
	d, err := handle.New(handle.Config{
		Scratch: filepath.Join(t.TempDir(), "scratch"),
		Author: func(context.Context, string) handle.Author {
			return handle.Author{Name: `Pat "P" \\ O'Neil`, Email: "pat@example.com"}
		},
	})
	require.NoError(t, err)
	return agent.Driver(d)
}

// TestGit runs what people run, under the policy that holds when none is given. Undo
// restores identical bytes, redo redoes identical bytes.
func TestGit(t *testing.T) {
	for name, script := range gitScripts {
		if ofTheOther(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			w := newProgramSetup(t, person(t))
			repository(t, w.dir)
			before := listing(t, w.dir, true)
			tx, err := w.s.Begin(t.Context())
			require.NoError(t, err)
			o, err := tx.Invoke(t.Context(), "shell_run", tool.Args{"script": "set -e\n" + script})
			require.NoError(t, err, o.Text)
			require.NotContains(t, o.Text, "[exit code")
			require.NoError(t, tx.Commit(t.Context()))
			after := listing(t, w.dir, true)
			_, err = w.s.Revert(t.Context(), tx.ID(), revert.Options{})
			require.NoError(t, err)
			equal(t, before, listing(t, w.dir, true), "reverted")
			_, err = w.s.Redo(t.Context(), tx.ID())
			require.NoError(t, err)
			equal(t, after, listing(t, w.dir, true), "redone")
			_, err = w.s.Revert(t.Context(), tx.ID(), revert.Options{})
			require.NoError(t, err)
			equal(t, before, listing(t, w.dir, true), "reverted again")
		})
	}
}

// guarded are changes that make git run code later, each with a word of its reason.
var guarded = map[string][2]string{
	"hook":        {"echo sh > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit", "runs this hook"},
	"config":      {"git config core.fsmonitor 'sh evil'", "core.fsmonitor"},
	"alias":       {"git config alias.st '!sh'", "alias.st"},
	"hooks path":  {"git config core.hooksPath ci", "core.hookspath"},
	"remote":      {"git remote add o https://example.com/x", "remote.*.url"},
	"worktree":    {"git config extensions.worktreeConfig true; git config --worktree core.pager sh", "core.pager"},
	"attributes":  {"echo '* filter=x' > .git/info/attributes", "filters"},
	"rebase":      {"! GIT_SEQUENCE_EDITOR=true git rebase -q -i --exec false --exec 'sh evil' HEAD~1 && test -d .git/rebase-merge", "rebase"},
	"nested":      {"git init -q new; git -C new config core.sshCommand evil", "core.sshcommand"},
	"nested hook": {"git init -q new; echo x > new/.git/hooks/pre-push", "runs this hook"},
	"bare":        {"git init -q --bare store", "HEAD"},
	"pointer":     {"mkdir x y; git init -q --bare y/z.git; echo 'gitdir: ../y' > x/.git", "another folder"},
	"bare config": {"git init -q --bare gd.git; mkdir -p gd; cp -r gd.git/. gd", "HEAD"},
	"removed":     {"rm -rf .git/hooks/*.sample; echo x > .git/hooks/a; rm -rf .git/hooks; ln -s ../h .git/hooks", "another folder"},
	"included":    {"git config include.path ../inc", "include.path"},
	"link":        {"mkdir evil; mv .git/info evil; ln -s ../evil/info .git/info", "another folder"},
}

// TestGitAsks: what makes git run code later is approved by a person, or not done.
func TestGitAsks(t *testing.T) {
	for name, tt := range guarded {
		if ofTheOther(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			w := newProgramSetup(t, person(t))
			repository(t, w.dir)
			before := listing(t, w.dir, true)
			tx, err := w.s.Begin(t.Context())
			require.NoError(t, err)
			o, err := tx.Invoke(t.Context(), "shell_run", tool.Args{"script": "set -e\n" + tt[0]})
			require.ErrorIs(t, err, tool.ErrDenied, o.Text)
			require.Contains(t, o.Error.Why, tt[1])
			equal(t, before, listing(t, w.dir, true), "nothing happened")
		})
	}
}

// linked are the user's own links on the way that git goes, and what a program then
// changes at their ends.
var linked = map[string][3]string{
	"hooks":      {"git config core.hooksPath ld/hk; mkdir -p rd/hk; ln -s rd ld", "printf '#!/bin/sh\\n' >rd/hk/pre-commit; chmod +x rd/hk/pre-commit", "runs this hook"},
	"renamed":    {"git config core.hooksPath ld/hk; mkdir -p rd; ln -s rd ld", "mkdir h; echo x > h/pre-commit; chmod +x h/pre-commit; mv h rd/hk", "runs this hook"},
	"taken away": {"git config core.hooksPath ld/hk; mkdir -p rd/hk; ln -s rd ld", "rm ld", "runs this hook"},
	"led on":     {"git config core.hooksPath ld/hk; mkdir -p rd; ln -s rd ld", "mkdir e; echo x > e/pre-commit; chmod +x e/pre-commit; ln -s ../e rd/hk", "runs this hook"},
	"outside":    {"git config core.hooksPath $PWD/../out/hk; mkdir hk; ln -s $(basename $PWD) ../out", "echo x > hk/pre-commit; chmod +x hk/pre-commit", "runs this hook"},
	"included":   {"git config include.path ../ld/inc; mkdir rd; touch rd/inc; ln -s rd ld", "git config -f rd/inc core.fsmonitor evil", "core.fsmonitor"},
	"above":      {"mkdir -p d e; ln -s ../d e/l; git config include.path ../e/l/../d/b; touch d/b", "git config -f d/b core.fsmonitor evil", "core.fsmonitor"},
	"worktree":   {"mkdir -p rd/cm/objects rd/cm/refs; ln -s rd ld; git worktree add -q wt side; echo ../../../ld/cm > .git/worktrees/wt/commondir", "git config -f rd/cm/config core.fsmonitor evil", "core.fsmonitor"},
	"attributes": {"touch real; ln -s ../../real .git/info/attributes", "echo '* filter=x' > real", "filters"},
	"home":       {"git config include.path '~/rd/inc'; mkdir rd", "git config -f rd/inc core.fsmonitor evil", "core.fsmonitor"},
}

// TestGitLinks: the links of the user count as git follows them, in folders too.
func TestGitLinks(t *testing.T) {
	for name, tt := range linked {
		if ofTheOther(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			w := newProgramSetup(t, person(t))
			repository(t, w.dir)
			cmd := exec.CommandContext(t.Context(), "sh", "-ec", tt[0])
			cmd.Dir = w.dir
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1"}
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, string(out))
			before := listing(t, w.dir, true)
			tx, err := w.s.Begin(t.Context())
			require.NoError(t, err)
			o, err := tx.Invoke(t.Context(), "shell_run", tool.Args{"script": "set -e\n" + tt[1]})
			require.ErrorIs(t, err, tool.ErrDenied, o.Text)
			require.Contains(t, o.Error.Why, tt[2])
			equal(t, before, listing(t, w.dir, true), "nothing happened")
			o, err = tx.Invoke(t.Context(), "shell_run", tool.Args{"script": "set -e\nmkdir -p other; echo x > other/pre-push.txt; git status; git commit -q --allow-empty -m more"})
			require.NoError(t, err, o.Text)
		})
	}
}

// TestGitRefusalNamesThePath: the first path that the policy asks about, not the first
// that the program changed.
func TestGitRefusalNamesThePath(t *testing.T) {
	w := newProgramSetup(t, person(t))
	repository(t, w.dir)
	tx, err := w.s.Begin(t.Context())
	require.NoError(t, err)
	for script, path := range map[string]string{
		"echo x > .aa; echo x > .git/hooks/pre-push": "file://workspace/.git/hooks/pre-push",
		"echo x > .aa; echo x > .env":                "file://workspace/.env",
	} {
		o, err := tx.Invoke(t.Context(), "shell_run", tool.Args{"script": script})
		require.ErrorIs(t, err, tool.ErrDenied, o.Text)
		require.Contains(t, o.Error.Why, "write "+path)
		require.Equal(t, path, w.call(t, o.Call).Failed.Access.Resource)
	}
}

// TestGitApproved: an approver sees the change, and undo reverts what was approved.
func TestGitApproved(t *testing.T) {
	preview := ""
	w := newProgramSetup(t, person(t), agent.Approver(ctxperm.ApproverFunc(func(_ context.Context, a ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
		preview = a.Preview
		return ctxperm.Approve("boss"), nil
	})))
	repository(t, w.dir)
	before := listing(t, w.dir, true)
	txn, o := w.shell(t, "git remote add o https://example.com/x; git remote -v")
	require.Contains(t, o.Text, "example.com")
	require.Contains(t, preview, "+\turl = https://example.com/x")
	_, err := w.s.Revert(t.Context(), txn, revert.Options{})
	require.NoError(t, err)
	equal(t, before, listing(t, w.dir, true), "reverted")
}

// TestGitWaits: a call that needs an approval waits with its difference. Its program
// runs again, and git writes other times into the index: what was approved must be
// the same, what the policy allows may differ.
func TestGitWaits(t *testing.T) {
	for name, script := range map[string]string{
		"one file": "git config alias.st status",
	} {
		t.Run(name, func(t *testing.T) {
			w := newProgramSetup(t, person(t), agent.SuspendForApproval())
			repository(t, w.dir)
			before := listing(t, w.dir, true)
			tx, o := w.wait(t, "shell_run", tool.Args{"script": script})
			equal(t, before, listing(t, w.dir, true), "nothing happened")
			require.Contains(t, w.call(t, o.Call).Asked.Preview, "+\tst = status")
			require.NoError(t, w.rt.Answer(t.Context(), agent.Answer{Call: o.Call, Approved: true, By: "boss", RequestDigest: w.asks(t, o.Call)}))
			done, err := tx.Resume(t.Context(), o.Call)
			require.NoError(t, err, done.Text)
			require.NotEqual(t, before, listing(t, w.dir, true))
			_, err = tx.Revert(t.Context(), revert.Options{})
			require.NoError(t, err)
			equal(t, before, listing(t, w.dir, true), "reverted")
		})
	}
}

// TestGitCredentials: a repository whose configuration holds a secret is out of reach.
func TestGitCredentials(t *testing.T) {
	w := newProgramSetup(t, person(t))
	repository(t, w.dir)
	config := filepath.Join(w.dir, ".git/config")
	data, err := os.ReadFile(config)
	require.NoError(t, err)
	for _, secret := range []string{"[remote \"o\"]\n\turl = https://me:hunter2@example.com/x\n", "[http]\n\textraheader = hunter2\n"} {
		require.NoError(t, os.WriteFile(config, append(slices.Clone(data), secret...), 0o644))
		_, o := w.shell(t, "grep -r hunter2 . .git; git status")
		require.NotContains(t, o.Text, "hunter2")
		require.Contains(t, o.Text, "not a git repository")
	}
	require.NoError(t, os.WriteFile(config, data, 0o644))
	_, o := w.shell(t, "git status")
	require.Contains(t, o.Text, "On branch main")
}

// TestGitAuthor: commits are by the person's name where the repository sets none, and
// by what it sets where it does.
func TestGitAuthor(t *testing.T) {
	w := newProgramSetup(t, person(t))
	repository(t, w.dir)
	_, o := w.shell(t, "git init -q n; cd n; git commit -q --allow-empty -m x; git log --format='%an <%ae>'; git config user.name Own; git commit -q --allow-empty -m x; git log -1 --format='%an <%ae>'")
	require.Contains(t, o.Text, `Pat "P" \\ O'Neil <pat@example.com>`+"\nOwn <pat@example.com>")
	_, o = w.shell(t, "git commit -q --allow-empty -m x; git log -1 --format='%an <%ae>'; git config --global user.name Global; git config user.name; env | grep ^GIT_")
	require.Contains(t, o.Text, "Person <person@example.com>\nPerson")
	none := newProgramSetup(t)
	repository(t, none.dir)
	_, o = none.shell(t, "git init -q n; cd n; git commit -q --allow-empty -m x; env | grep ^GIT_")
	require.Contains(t, o.Text, "Please tell me who you are")
	require.NotContains(t, o.Text, "GIT_CONFIG")
}
