package gitguard_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/gitguard"
)

// linked returns a repository with a configuration and links.
func linked(config string, links ...string) files {
	f := files{".git/HEAD": "ref: refs/heads/main\n", ".git/config": config}
	for _, l := range links {
		name, to, _ := strings.Cut(l, "@")
		f[name+"@"] = to
	}
	return f
}

const (
	hooksAt        = "[core]\nhooksPath = "
	include        = "[include]\npath = "
	injectedConfig = " [core]\nfsmonitor=x"
	changed        = "changed core.fsmonitor"
)

// TestWays checks that git reaches a changed path through links in folders, and
// outside of the root.
func TestWays(t *testing.T) {
	for name, tt := range map[string]struct {
		was  files
		runs map[string]string
	}{
		"folder":        {linked(hooksAt+"ld/hk", "ld@rd"), map[string]string{"+rd/hk/a x": "hook", "@ld": "hook", "@rd": "hook", "@rd/hk": "hook", "+rd/a x": "", "+ld/hk/a x": "", "@rd/x": ""}},
		"two":           {linked(hooksAt+"a/b/hk", "a@x", "x/b@../rd"), map[string]string{"+rd/hk/a x": "hook", "@a": "hook", "@x": "hook", "@x/b": "hook", "+x/hk/a x": ""}},
		"missing":       {linked(hooksAt + "a/b/../hk"), map[string]string{"+a/hk/a x": "hook", "@a/b": "hook", "@a": "hook"}},
		"above a link":  {linked(include+"../e/l/../d/b", "e/l@../d/x"), map[string]string{"+d/d/b" + injectedConfig: changed, "+e/d/b" + injectedConfig: "", "@e/l": "link"}},
		"include":       {linked(include+"../ld/inc", "ld@rd"), map[string]string{"+rd/inc" + injectedConfig: changed, "@rd": "link"}},
		"absolute":      {linked(hooksAt+"/x/out/hk", "/x/out@/srv/ws"), map[string]string{"+hk/a x": "hook"}},
		"relative":      {linked(include+"/x/out/a/inc", "/x/out@../srv/ws", "a@b"), map[string]string{"+b/inc" + injectedConfig: changed}},
		"up and down":   {linked(include + "../../ws/inc"), map[string]string{"+inc" + injectedConfig: changed}},
		"up and a link": {linked(include+"../../l/inc", "/srv/l@ws"), map[string]string{"+inc" + injectedConfig: changed}},
		"another mount": {linked(hooksAt+"/mnt/hk", "/mnt@ROOT"), map[string]string{"+hk/a x": "hook", "+a x": ""}},
		"link out":      {linked(hooksAt+"l/hk", "l@/x", "/x@/srv/ws/r"), map[string]string{"+r/hk/a x": "hook"}},
		"loop":          {linked(include+"../l/inc", "l@m", "m@l"), map[string]string{"+any/inc" + injectedConfig: changed, "!a/pre-push x": "hook", "+any/x" + injectedConfig: "", "@l": "link"}},
		"no permission": {linked(hooksAt+"/x/hk", "/x@LOST"), map[string]string{"!a/pre-push x": "hook", "!a/other x": ""}},
		"gone outside":  {linked(include + "/x/inc"), map[string]string{"+any/inc" + injectedConfig: changed, "!a/pre-push x": "hook"}},
		"home":          {linked(include+"~/ws/inc", "/home/u/ws@/srv/ws"), map[string]string{"+inc" + injectedConfig: changed, "+any/inc" + injectedConfig: changed, "@inc": "link"}},
		"home hooks":    {linked(hooksAt+"~/ws/hk", "/home/u/ws@/srv/ws"), map[string]string{"+hk/a x": "hook"}},
		"other home":    {linked(include+"~you/inc", "/srv/ws/x@y"), map[string]string{"+any/INC" + injectedConfig: changed, "!a/pre-push x": "hook"}},
		"prefix":        {linked("[core]\nattributesFile = %(prefix)/at"), map[string]string{"+any/at x": "attributes"}},
		"attributes":    {linked("[core]\nattributesFile = ld/at", "ld@rd"), map[string]string{"+rd/at x": "attributes", "-rd/at": "", "@ld": "link"}},
		"info":          {linked("", ".git/info/attributes@../../real"), map[string]string{"+real x": "attributes", "@real": "link"}},
		"info folder":   {linked("", ".git/info@../rd"), map[string]string{"+rd/attributes x": "attributes", "+rd/exclude x": ""}},
		"remotes":       {linked("", ".git/remotes@../rd"), map[string]string{"+rd/o x": "changed remote.o.url"}},
		"rebase":        {linked("", ".git/rebase-merge@../rd"), map[string]string{"+rd/git-rebase-todo x sh": "todo", "+rd/strategy x": "todo", "+rd/done x sh": ""}},
		"case":          {linked(hooksAt+"LD/hk", "LD@Rd"), map[string]string{"+rd/HK/a x": "hook", "@ld": "hook"}},
		"git":           {files{".git@": "ld/gd", "ld@": "rd", "rd/gd/config": hooksAt + "hk"}, map[string]string{"+rd/gd/config" + injectedConfig: "changed core.fsmonitor,core.hookspath", "+rd/gd/hooks/a x": "hook", "+hk/a x": "hook", "@ld": "link", "@rd/gd": "link", "+rd/gd/index x": ""}},
		"git file":      {files{".git": "gitdir: ld/gd", "ld@": "rd", "rd/gd/config": ""}, map[string]string{"+rd/gd/config" + injectedConfig: changed, "@ld": "link", "-.git": "link"}},
		"git lost":      {files{".git@": "l", "l@": "l"}, map[string]string{"!a/pre-push x": "hook"}},
		"from where it stands": {
			files{".git/HEAD": "ref: x", ".git/config@": "../c/cfg", "c/cfg": include + "inc\n", ".git/inc@": "../d/inc", "d/inc": include + "more"},
			map[string]string{"+d/inc" + injectedConfig: "changed core.fsmonitor,include.path", "+.git/more" + injectedConfig: changed, "+c/inc" + injectedConfig: "", "+d/more" + injectedConfig: ""},
		},
		"common": {
			files{".git/HEAD": "ref: x", ".git/worktrees/w/commondir": "../../../ld/cm\n", ".git/worktrees/w/HEAD": "ref: x", "ld@": "rd", "rd/cm/config": hooksAt + "h"},
			map[string]string{
				"+rd/cm/config" + injectedConfig: "changed core.fsmonitor,core.hookspath", "+rd/cm/hooks/a x": "hook", "+rd/cm/info/attributes x": "attributes", "@ld": "link",
				"+rd/cm/refs/heads/config x": "", "+rd/cm/objects/ab/c x": "", "-.git/worktrees/w/commondir": "link", "@rd/cm": "link",
			},
		},
		"common of no file": {
			files{".git/HEAD": "ref: x", ".git/config": hooksAt + "h", "wt/.git": "gitdir: ../.git/worktrees/w", ".git/worktrees/w/HEAD": "ref: x"},
			map[string]string{"+wt/h/a x": "hook", "-wt/.git": "link"},
		},
		"common elsewhere": {
			files{".git/HEAD": "ref: x", ".git/worktrees/w/commondir": "/x\n", ".git/worktrees/w/HEAD": "ref: x"},
			map[string]string{"!a/pre-push x": "hook", "+a/config" + injectedConfig: ""},
		},
		"common unreadable": {files{".git/HEAD": "ref: x", ".git/commondir/": ""}, map[string]string{"!a/pre-push x": "hook"}},
		"worktree": {
			files{".git/HEAD": "ref: x", ".git/worktrees/w/gitdir": "/srv/ws/wt/.git\n", ".git/worktrees/w/commondir": "../..\n", ".git/worktrees/w/HEAD": "ref: x", ".git/worktrees/w/config.worktree": hooksAt + "../h"},
			map[string]string{"+h/a x": "hook", "-.git/worktrees/w/commondir": ""},
		},
		"submodule": {
			files{".git/HEAD": "ref: x", ".git/modules/a/b/HEAD": "ref: x", ".git/modules/a/b/config": "[core]\nworktree = ../../../../a/b\nhooksPath = ../h"},
			map[string]string{"+a/h/x x": "hook", "+h/x x": ""},
		},
		"submodule too deep": {files{".git/HEAD": "ref: x", ".git/modules/a/b/c/d/e/f/config": ""}, map[string]string{"!a/pre-push x": "hook"}},
		"modules unreadable": {files{".git/HEAD": "ref: x", ".git/modules@": "/x"}, map[string]string{"!a/pre-push x": "hook"}},
		"bare":               {files{"st/HEAD": "ref: x", "st/config": hooksAt + "ld/h", "st/ld@": "rd"}, map[string]string{"+st/rd/h/x x": "hook"}},
		"alternates":         {linked("", "ld@rd"), map[string]string{"+.git/objects/info/alternates /x": "", "@ld": ""}},
	} {
		for change, want := range tt.runs {
			require.Equal(t, want, judge(t, tt.was, change), "%s %s", name, change)
		}
	}
}

// TestWaysInOneCall checks that other changes of a call do not hide a link on
// the path.
func TestWaysInOneCall(t *testing.T) {
	was := linked(hooksAt+"ld/hk", "ld@rd")
	c := gitguard.Change{Path: "ld", Was: "link"}
	require.Equal(t, &gitguard.Facts{Kind: gitguard.Hook}, gitguard.New("/srv/ws", was.all(), []gitguard.Change{c}).Facts(c))
	c.Type = "dir"
	require.Equal(t, &gitguard.Facts{Kind: gitguard.Hook}, gitguard.New("/srv/ws", was.all(), []gitguard.Change{c}).Facts(c))
	require.Equal(t, "hook", judge(t, was, "-.git/HEAD", "-.git/config", "-rd/hk/x"))
	was = linked("[core]\nworktree = ..", "a@b")
	require.Equal(t, "changed core.worktree", judge(t, was, "+.git/config [core]\nworktree = ../a"))
	require.Empty(t, judge(t, was, "+.git/config [core]\nworktree = ../b"))
	require.Equal(t, "link", judge(t, linked("", "a@b.git"), "+c/.git gitdir: ../a"))
	require.Equal(t, "link", judge(t, linked("", "b@d"), "+c/.git gitdir: ../b/x.git"))
}

// TestUnknownRoot checks that absolute names count as unknown if the path of
// the root is unknown.
func TestUnknownRoot(t *testing.T) {
	for config, want := range map[string]bool{"": true, include + "/srv/ws/inc": true, include + "../inc": true, include + "../../inc": true} {
		was := linked(config)
		c := gitguard.Change{Path: "x/inc", Type: "file", After: func() ([]byte, error) { return []byte(injectedConfig), nil }}
		facts := gitguard.New("", was.all(), []gitguard.Change{c}).Facts(c)
		require.Equal(t, strings.Contains(config, "/srv") || strings.Contains(config, "../../"), facts != nil, config)
		c = gitguard.Change{Path: "x/pre-push", Type: "file", Exec: true}
		require.Equal(t, want, gitguard.New("", was.all(), []gitguard.Change{c}).Facts(c) != nil, config)
	}
}

// TestRepositoryAbove checks that a repository above the root can name any
// folder in it, regardless of the changes of a program.
func TestRepositoryAbove(t *testing.T) {
	was := linked("")
	require.Empty(t, judge(t, was, "!ci/pre-push x"))
	was["/srv/.git"] = "a folder"
	require.Equal(t, "hook", judge(t, was, "!ci/pre-push x"))
}

// TestManyFolders checks that the guard bounds the worktrees of a repository
// that it reads.
func TestManyFolders(t *testing.T) {
	was := linked("")
	for i := range 70 {
		was[fmt.Sprintf(".git/worktrees/w%02d/commondir", i)] = "../..\n"
	}
	require.Equal(t, "hook", judge(t, was, "!ci/pre-push x"))
	was = linked(include + "../c0")
	for i := range 40 {
		was[fmt.Sprintf("c%d", i)] = fmt.Sprintf("[include]\npath = c%d", i+1)
	}
	require.Equal(t, "hook", judge(t, was, "!ci/pre-push x"))
	was = linked("")
	for i := range 80 {
		was[fmt.Sprintf(".git/modules/m%02d/%d/config", i/2, i%2)] = ""
	}
	require.Equal(t, "hook", judge(t, was, "!ci/pre-push x"))
}

// TestLooksOfLinks checks that the number of reads for a repository does not
// depend on the tree. Further changes only read the folders above them.
func TestLooksOfLinks(t *testing.T) {
	was := linked(hooksAt+"ld/hk", "ld@rd")
	var looks []string
	f := was.all()
	f.Link = func(name string) (string, error) {
		looks = append(looks, name)
		return was.link(name)
	}
	var all []gitguard.Change
	for i := range 100 {
		all = append(all, gitguard.Change{Path: fmt.Sprintf("a/f%d", i), Type: "file"})
	}
	g := gitguard.New("/srv/ws", f, all)
	for _, c := range all {
		require.Nil(t, g.Facts(c))
	}
	slices.Sort(looks)
	require.Len(t, slices.Compact(slices.Clone(looks)), len(looks), "no name twice")
	require.Less(t, len(looks), 150)
	t.Log(len(looks), "looks")
}
