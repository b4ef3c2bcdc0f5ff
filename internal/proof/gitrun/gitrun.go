// Package gitrun makes random sequences of git commands for proofs of revert. A
// sequence depends on its seed alone.
package gitrun

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Sequence is the input of one proof.
type Sequence struct {
	Setup string   // a script that creates a repository in an empty folder
	Calls []string // one to four scripts for calls
}

// head precedes each call: no command waits for a person.
const head = "export GIT_EDITOR=true GIT_SEQUENCE_EDITOR=true GIT_MERGE_AUTOEDIT=no\n"

// New returns the sequence of a seed.
func New(seed uint64) Sequence {
	m := maker{rand.New(rand.NewPCG(seed, 17))} //nolint:gosec // a proof must repeat
	s := Sequence{Setup: m.setup()}
	for range 1 + m.IntN(4) {
		var b strings.Builder
		b.WriteString(head)
		for range 1 + m.IntN(8) {
			b.WriteString(m.command() + "\n")
		}
		s.Calls = append(s.Calls, b.String()+"true\n")
	}
	return s
}

type maker struct{ *rand.Rand }

func (m maker) of(all ...string) string { return all[m.IntN(len(all))] }

func (m maker) file() string {
	return m.of("a", "b", "c.txt", "src/a", "src/b", "src/deep/c", "docs/x y", "docs/ü", "run", "data.bin")
}

func (m maker) branch() string { return m.of("main", "side", "topic", "fix/one", "fix/two", "hooks/x") }

func (m maker) commit() string {
	return m.of("HEAD", "HEAD~1", "HEAD~2", "HEAD^2", "main", "side", "topic", "v1", "v2", "main~1", "side~1", "stash@{0}", "ORIG_HEAD")
}

func (m maker) word() string { return fmt.Sprintf("w%d", m.IntN(1000)) }

// setup creates a repository with up to twenty commits on several branches.
func (m maker) setup() string {
	var b strings.Builder
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(&b, format+"\n", args...) }
	line("git init -q -b main .")
	line("git config user.name Person; git config user.email person@example.com")
	if m.IntN(3) == 0 {
		line("git config %s", m.of("core.autocrlf input", "rerere.enabled true", "merge.conflictstyle diff3", "core.logAllRefUpdates always"))
	}
	line("mkdir -p src/deep docs")
	for range 3 + m.IntN(8) {
		line("%s", m.edit())
	}
	line("git add -A; git commit -q --allow-empty -m first")
	for range 2 + m.IntN(8) {
		switch m.IntN(6) {
		case 0:
			line("git checkout -q -b %s || git checkout -q %s || git checkout -q -f main", m.branch(), m.branch())
		case 1:
			line("git tag %s", m.of("v1", "v2", "v3"))
		case 2:
			line("git merge -q --no-edit %s || git merge --abort", m.branch())
		default:
			line("%s; %s; git add -A; git commit -q --allow-empty -m %s", m.edit(), m.edit(), m.word())
		}
	}
	if m.IntN(3) == 0 {
		line("git gc -q")
	}
	if m.IntN(4) == 0 {
		line("git worktree add -q -b wt%d trees/one", m.IntN(9))
	}
	for range m.IntN(4) { // uncommitted work
		line("%s", m.edit())
	}
	if m.IntN(3) == 0 {
		line("git stash -q -u")
	}
	line("true")
	return b.String()
}

// edit changes the working tree.
func (m maker) edit() string {
	f := "'" + m.file() + "'"
	return m.of(
		"mkdir -p $(dirname "+f+"); echo "+m.word()+" >> "+f,
		"mkdir -p $(dirname "+f+"); printf '"+m.word()+"\\n"+m.word()+"\\n' > "+f,
		"sed -i 1s/w/v/ "+f,
		"yes "+m.word()+" | head -c "+fmt.Sprint(1+m.IntN(70000))+" > "+f,
		"rm -f "+f,
		"chmod "+m.of("644", "755", "600")+" "+f,
		"touch -d @"+fmt.Sprint(m.IntN(1_700_000_000))+" "+f,
		"ln -sf "+m.of("a", "../a", "nowhere")+" "+m.of("link", "src/link"),
		"ln -f "+f+" "+m.of("twin", "src/twin"),
		"mv -f "+f+" '"+m.file()+"'",
		"mkdir -p "+m.of("empty", "out/x")+"; echo "+m.word()+" > new"+m.word(),
		"mv src "+m.of("lib", "docs/src"),
		"echo '"+m.of("new*", "*.txt", "out")+"' > .gitignore",
	) + " 2>/dev/null"
}

// command returns one step of a call: an edit or a git command. It may fail.
func (m maker) command() string {
	if m.IntN(4) == 0 {
		return m.edit()
	}
	return m.of(m.commits(), m.commits(), m.branches(), m.history(), m.history(), m.tree(), m.store(), m.repositories(), m.look())
}

func (m maker) commits() string {
	return m.of(
		"git add -A", "git add -A; git commit -qm "+m.word(), "git commit -qam "+m.word(), "git commit -q --amend --no-edit -a",
		"git commit -q --allow-empty -m "+m.word(), "git add -u; git commit -q -m "+m.word()+" -m body",
		"git add -- '"+m.file()+"'", "git rm -q -r --ignore-unmatch -- '"+m.file()+"'", "git mv '"+m.file()+"' '"+m.file()+"'", "git mv src "+m.of("lib", "docs/lib"),
		"git stash -q", "git stash -q -u", "git stash -q -k", "git stash pop -q", "git stash apply -q", "git stash drop -q", "git stash clear", "git stash branch back",
	)
}

func (m maker) branches() string {
	b := m.branch()
	return m.of(
		"git checkout -q "+b, "git checkout -q -f "+b, "git checkout -q -b "+b, "git switch -q -c new"+m.word(), "git checkout -q --detach "+m.commit(),
		"git branch "+b, "git branch -m "+b+" moved", "git branch -m "+b+" "+m.branch(), "git branch -D "+b, "git branch -c "+b+" copy",
		"git branch -q --track tracked "+b, "git branch -q --set-upstream-to="+b, "git branch --unset-upstream", "git branch -f "+b+" "+m.commit(),
		"git tag "+m.of("v1", "v2", "v3")+" "+m.commit(), "git tag -a -m note "+m.of("v4", "config"), "git tag -d "+m.of("v1", "v2"),
		"git update-ref refs/other/x "+m.commit(), "git symbolic-ref refs/heads/alias refs/heads/main",
	)
}

func (m maker) history() string {
	c, b := m.commit(), m.branch()
	return m.of(
		"git merge -q --no-edit "+b, "git merge -q --no-ff --no-edit "+b, "git merge -q --squash "+b, "git merge -q -s ours --no-edit "+b, "git merge --abort",
		"git rebase -q "+b, "git rebase -q -i "+c, "git rebase -q --autostash "+b, "git rebase -q -i --exec true HEAD~1", "git rebase --abort", "git rebase --skip",
		"git add -A; git rebase --continue", "GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' git rebase -q -i HEAD~2", "GIT_SEQUENCE_EDITOR='sed -i 2s/pick/squash/' git rebase -q -i HEAD~2",
		"git cherry-pick "+c, "git cherry-pick -n "+c, "git cherry-pick --abort", "git revert --no-edit "+c, "git revert --abort",
		"git reset -q --hard "+c, "git reset -q --soft "+c, "git reset -q "+c, "git reset -q --merge",
		"git format-patch -q -o patches HEAD~1; git am -q patches/*; rm -r patches", "git am --abort", "git bisect start HEAD HEAD~2; git bisect run true", "git bisect reset",
		"git notes add -f -m "+m.word(), "git replace -f HEAD HEAD~1", "git replace -d HEAD",
	)
}

func (m maker) tree() string {
	return m.of(
		"git clean -qfd", "git clean -qfdx", "git checkout -q -- .", "git restore -q --staged .", "git restore -q --source=HEAD~1 '"+m.file()+"'",
		"git checkout -q "+m.commit()+" -- .", "git update-index --chmod=+x '"+m.file()+"'", "git update-index --assume-unchanged '"+m.file()+"'", "git read-tree HEAD~1",
		"git sparse-checkout set src", "git sparse-checkout disable", "git diff > p.patch; git checkout -q .; git apply p.patch", "git ls-files -z | git update-index -z --index-info; git status -s",
		"git archive HEAD | tar x -C /tmp; git archive -o all.tar HEAD",
	)
}

func (m maker) store() string {
	return m.of(
		"git gc -q", "git gc -q --prune=now", "git repack -q -a -d", "git repack -q -A -d --unpack-unreachable=now", "git repack -q -d", "git prune", "git prune-packed -q", "git pack-refs --all",
		"git reflog expire --expire=now --all", "git commit-graph write --reachable", "git multi-pack-index write", "git unpack-objects -q < $(ls .git/objects/pack/*.pack | head -1)",
		"git maintenance run -q --task=gc", "git fast-export --all > all.fe; git fast-import --quiet --force < all.fe", "git bundle create -q all.bundle --all", "git update-server-info", "git index-pack -o x.idx $(ls .git/objects/pack/*.pack | head -1)",
		"git rerere", "git config "+m.of("user.name Other", "pull.rebase true", "branch.main.description x", "gc.auto 1"),
	)
}

func (m maker) repositories() string {
	return m.of(
		"git worktree add -q "+m.of("wt", "trees/two")+" "+m.branch(), "git worktree add -q -b "+m.word()+" "+m.of("wt", "trees/two"), "git worktree remove -f "+m.of("wt", "trees/one", "trees/two"),
		"git worktree move wt wt2", "git worktree prune; git worktree list", "cd wt && echo x > in && git add in && git commit -qm in; cd - >/dev/null", "rm -rf wt; git worktree prune",
		"git init -q inner && cd inner && echo x > f && git add f && git commit -qm x; cd - >/dev/null", "git clone -q . copy", "git clone -q --no-hardlinks . copy", "git clone -q -s . copy", "rm -rf copy inner",
		"git -c protocol.file.allow=always submodule --quiet add ./ sub", "git submodule --quiet update --init", "git submodule --quiet deinit -f --all", "git fetch -q ./copy", "git pull -q --no-rebase ./copy main",
		// these need approval
		"git config "+m.of("alias.x '!true'", "core.fsmonitor true", "core.hooksPath ci"), "echo true > .git/hooks/pre-commit", "git remote add r ./copy", "git init -q --bare store", "rm -rf .git",
	)
}

func (m maker) look() string {
	return m.of("git status -s", "git diff --stat", "git log --oneline --all --graph", "git show --stat", "git fsck", "git describe --all", "git blame a", "git ls-files -s", "git reflog", "git grep w", "git stash list", "git count-objects -v")
}
