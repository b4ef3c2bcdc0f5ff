package gitguard_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/gitguard"
)

// files is a root before the changes. A name that ends with a slash is a
// folder.
type files map[string]string

func (f files) read(name string) ([]byte, error) {
	if text, ok := f[name]; ok {
		return []byte(text), nil
	}
	for other := range f {
		if strings.HasPrefix(other, name+"/") || other == name+"@" {
			return nil, errors.New("is no file")
		}
	}
	return nil, fs.ErrNotExist
}

// list returns the names in a folder.
func (f files) list(name string) ([]string, error) {
	var out []string
	for other := range f {
		if rest, ok := strings.CutPrefix(other, name+"/"); ok && rest != "" {
			first, _, _ := strings.Cut(rest, "/")
			out = append(out, strings.TrimSuffix(first, "@"))
		}
	}
	slices.Sort(out)
	if out = slices.Compact(out); len(out) == 0 {
		return nil, fs.ErrNotExist
	}
	return out, nil
}

// link returns the target of a name, stored as "name@". "LOST" cannot be read.
func (f files) link(name string) (string, error) {
	switch to, ok := f[name+"@"]; {
	case to == "LOST":
		return "", fs.ErrPermission
	case ok:
		return to, nil
	}
	_, err := f.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return "", nil
}

// outside is link for names outside of the root. "ROOT" is the root itself.
func (f files) outside(name string) (string, bool, error) {
	to, err := f.link(name)
	if to == "ROOT" {
		return "", true, nil
	}
	if _, ok := f[name]; ok {
		err = nil
	}
	return to, false, err
}

// all returns the Files of the guard.
func (f files) all() gitguard.Files {
	return gitguard.Files{Read: f.read, List: f.list, Link: f.link, Outside: f.outside, Home: "/home/u"}
}

// kind returns the type of a path. A removed path was a file, unless it is
// known to be a folder.
func (f files) kind(name string, removed bool) string {
	if _, ok := f[name+"/"]; ok {
		return "dir"
	}
	if _, ok := f[name]; ok || removed {
		return "file"
	}
	return ""
}

// judge returns the facts of the last change. A change is "+path content",
// "-path", "/path" for a folder, "@path" for a link and "!path content" for a
// program.
func judge(t *testing.T, was files, changes ...string) string {
	t.Helper()
	var all []gitguard.Change
	for _, text := range changes {
		name, content, _ := strings.Cut(text[1:], " ")
		old := was[name]
		all = append(all, gitguard.Change{
			Path: name, Type: map[byte]string{'+': "file", '!': "file", '-': "", '/': "dir", '@': "link"}[text[0]], Exec: text[0] == '!',
			Was: was.kind(name, text[0] == '-'),
			After: func() ([]byte, error) {
				if content == "UNREADABLE" {
					return nil, gitguard.ErrTooLarge
				}
				return []byte(content), nil
			},
			Before: func() ([]byte, error) { return []byte(old), nil },
		})
	}
	f := gitguard.New("/srv/ws", was.all(), all).Facts(all[len(all)-1])
	switch {
	case f == nil:
		return ""
	case f.Kind != gitguard.Config:
		require.Empty(t, f.Keys)
		require.False(t, f.New)
		return f.Kind
	}
	return fmt.Sprint(map[bool]string{true: "new ", false: "changed "}[f.New], strings.Join(f.Keys, ","))
}

func TestPaths(t *testing.T) {
	for change, want := range map[string]string{
		// the history
		"+.git/HEAD ref: refs/heads/main":    "",
		"+.git/index x":                      "",
		"+.git/objects/ab/cd x":              "",
		"+.git/refs/heads/config x":          "",
		"+.git/refs/heads/fix/hooks/x x":     "",
		"+.git/refs/tags/hooks x":            "",
		"+.git/logs/refs/heads/config x":     "",
		"+.git/packed-refs x":                "",
		"+.git/info/exclude x":               "",
		"+.git/hooks/pre-commit.sample x":    "",
		"/.git/hooks":                        "",
		"/.git":                              "",
		"-.git":                              "",
		"+.git/rebase-merge/done exec sh":    "",
		"-.git/rebase-merge/git-rebase-todo": "",
		"-.git/info/attributes":              "",
		"+src/HEAD some notes":               "",
		"+HEAD UNREADABLE":                   "repository",
		"+src/config a=b":                    "",
		"+src/hooks/pre-commit x":            "",
		"+hooks/pre-commit x":                "",
		"+.gitattributes * filter=x":         "",
		"+.gitmodules x":                     "",
		"+.github/hooks/x x":                 "",
		"-HEAD":                              "",
		"+lib.git a file":                    "",
		// code that git runs
		"+.git/hooks/pre-commit x":                "hook",
		"-.git/hooks/pre-commit":                  "hook",
		"+.git/hooks/lib/x x":                     "hook",
		"+.GIT/Hooks/pre-commit x":                "hook",
		"+.git./hooks/pre-commit x":               "hook",
		"+GIT~1/hooks/pre-commit x":               "hook",
		"+a/.git/modules/sub/hooks/post-commit x": "hook",
		"+a/.git/modules/refs/heads/hooks/x x":    "hook",
		"+bare.git/hooks/update x":                "hook",
		"+.git/refs/remotes/o/hooks/x x":          "hook",
		"+.git/info/attributes * filter=x":        "attributes",
		"+.git/modules/a/b/info/attributes x":     "attributes",
		// links
		"@.git":                                  "link",
		"@.git/hooks":                            "link",
		"@.git/worktrees":                        "link",
		"@bare.git":                              "link",
		"+.git gitdir: /srv/ws/.git/worktrees/w": "",
		"+a/.git gitdir: ../.git/modules/a":      "",
		"+a/.git gitdir: ../lib.git":             "",
		"+.git gitdir: /elsewhere/.git":          "link",
		"+.git gitdir: /srv/ws-2/.git":           "link",
		"+.git gitdir: /srv/ws/../x/.git":        "link",
		"+.git gitdir: /srv/ws":                  "link",
		"+a/.git gitdir: ../evil":                "link",
		"+a/.git gitdir: ../../x/.git":           "link",
		"+a/.git gitdir: x/../../.git":           "link",
		"+a/.git gitdir: ../x/../.git":           "link",
		"+a/.git nonsense":                       "link",
		"+.git UNREADABLE":                       "link",
		"+.git/worktrees/w/commondir ../..":      "",
		"+.git/worktrees/w/commondir ../../x":    "link",
		"+.git/commondir ../..":                  "link",
		"+.git/commondir UNREADABLE":             "link",
		"+.git/worktrees/w/gitdir /srv/ws/w":     "",
		// a stopped rebase
		"+.git/rebase-merge/git-rebase-todo pick 1\n":                "",
		"+.git/rebase-merge/git-rebase-todo pick 1\nexec sh x\n":     "todo",
		"+.git/rebase-merge/git-rebase-todo \t x  sh\n":              "todo",
		"+.git/worktrees/w/rebase-merge/git-rebase-todo exec x":      "todo",
		"+.git/rebase-merge/git-rebase-todo UNREADABLE":              "todo",
		"+.git/rebase-merge/strategy ort\n":                          "",
		"+.git/rebase-merge/strategy x/evil\n":                       "todo",
		"+.git/rebase-merge/strategy UNREADABLE":                     "todo",
		"+.git/sequencer/opts [options]\n\tstrategy = ours\n":        "",
		"+.git/sequencer/opts [options]\n\tstrategy = x/evil\n":      "todo",
		"+.git/remotes/bk URL: ssh://host/x.git\n":                   "changed remote.bk.url",
		"+.git/branches/bk ssh://host/x.git\n":                       "changed remote.bk.url",
		"+.git/rebase-merge/git-rebase-todo pick 1 exec the order\n": "",
		// folders that git treats as a repository
		"+x/HEAD ref: refs/heads/main":                       "repository",
		"+x/HEAD 0123456789012345678901234567890123456789":   "repository",
		"+x/head ref: x":                                     "repository",
		"@HEAD":                                              "repository",
		"+.git/refs/heads/x/HEAD ref: x":                     "repository",
		"+.git/refs/remotes/origin/HEAD ref: refs/remotes/x": "",
	} {
		require.Equal(t, want, judge(t, files{}, change), change)
	}
}

func TestBareRepositories(t *testing.T) {
	was := files{"store/HEAD": "ref: refs/heads/main\n", "HEAD": "notes", "store/config": "[core]\n"}
	require.Equal(t, "hook", judge(t, was, "+store/hooks/update x"))
	require.Equal(t, "changed core.fsmonitor", judge(t, was, "+store/config [core]\nfsmonitor = evil"))
	require.Empty(t, judge(t, was, "+hooks/update x"))
	require.Empty(t, judge(t, was, "+config x"))
	require.Equal(t, "hook", judge(t, files{"HEAD": "ref: x"}, "+hooks/update x"))
}

// TestFoldersOfOtherNames checks that git treats a folder with a HEAD as a
// repository, under any name.
func TestFoldersOfOtherNames(t *testing.T) {
	const commit = "0123456789012345678901234567890123456789"
	was := files{"a/gd/HEAD": commit + " and more", "a/gd/config": "[core]\nbare=false", "x.git/refs/heads/b/HEAD": commit, "a/gd/hooks/pre-commit": "x"}
	for change, want := range map[string]string{
		"+a/gd/config [core]\nfsmonitor=sh":        "changed core.bare,core.fsmonitor",
		"+a/gd/config.worktree [core]\nx=1":        "changed core.x",
		"+a/gd/modules/s/config [core]\nx=1":       "new core.x",
		"+a/gd/worktrees/w/config.worktree [a]\nx": "changed a.x",
		"+a/gd/hooks/pre-commit x":                 "hook",
		"+a/gd/Hooks/pre-commit x":                 "hook",
		"+a/gd/hook\u017f/pre-commit x":            "hook",
		"+a/gd/h\u200dooks/pre-commit x":           "hook",
		"+a/gd/con\ufb01g [core]\nx=1":             "new core.x",
		"-a/gd/hooks/pre-commit":                   "hook",
		"+a/gd/hooks/x.sample x":                   "",
		"+a/gd/info/attributes x":                  "attributes",
		"+a/gd/commondir ../evil":                  "link",
		"+a/gd/rebase-merge/git-rebase-todo x sh":  "todo",
		"@a/gd/hooks":                              "link",
		"@a/gd/config":                             "link",
		"+a/gd/remotes/o URL: x":                   "changed remote.o.url",
		"+a/gd/index x":                            "",
		"+a/gd/refs/heads/config x":                "",
		"+a/gd/HEAD ref: refs/heads/x":             "",
		"+a/gd/HEAD nothing":                       "repository",
		"-a/gd/HEAD":                               "repository",
		"/a/gd/HEAD":                               "repository",
		"@a/gd/HEAD":                               "",
		"+b/HEAD " + commit + " words":             "repository",
		"+b/HEAD " + commit[1:] + " words":         "",
		"+x.git/refs/heads/b/config [core]\nx=1":   "new core.x",
		"+x.git/refs/heads/c/config [core]\nx=1":   "",
		"+x.git/hooks/y.git/z x":                   "hook",
		"+a/config [core]\nx=1":                    "",
		"+.gitconfig [core]\nfsmonitor=sh":         "new core.fsmonitor",
		"+h/.config/git/config [core]\nx=1":        "new core.x",
		"+h/config/git/config [core]\nx=1":         "",
		"+.g\u200cit/hooks/x x":                    "hook",
	} {
		require.Equal(t, want, judge(t, was, change), change)
	}
	unreadable := files{"gd/HEAD/": ""} // with unknown content
	require.Equal(t, "hook", judge(t, unreadable, "+gd/hooks/x x"))
}

// TestHooksOfUnknownPlaces checks that the name of a hook decides if a
// repository is outside of the root, or its configuration is unreadable there.
func TestHooksOfUnknownPlaces(t *testing.T) {
	known := files{".git/": "", ".git/config": "[core]\n"}
	for name, was := range map[string]files{
		"above the root": {},
		"elsewhere":      {".git": "gitdir: /home/x/.git/worktrees/w\n"},
		"home":           {".git/": "", ".git/config": "[core]\nhooksPath=~/h\n"},
		"included":       {".git/": "", ".git/config": "[include]\npath=~/c\n"},
		"unreadable":     {".git/": "", ".git/config/": ""},
		"nested":         {"a/.git": "gitdir: ../../b\n", ".git/": "", ".git/config": ""},
	} {
		require.Equal(t, "hook", judge(t, was, "!a/hooks/Pre-Commit x"), name)
		require.Empty(t, judge(t, was, "!a/hooks/run x"), name)
		require.Empty(t, judge(t, was, "+a/hooks/pre-commit x"), name)
		require.Empty(t, judge(t, known, "!a/hooks/pre-commit x"), name)
	}
}

// TestIncluded checks that a file included by the configuration counts as
// configuration.
func TestIncluded(t *testing.T) {
	was := files{
		".git/": "", ".git/config": "[include]\npath = ../conf/a\n[includeIf \"gitdir:x/\"]\npath=/srv/ws/b\n",
		"conf/a": "[include]\npath=c\n[core]\nhooksPath=h\n", "conf/c": "[include]\npath=a",
	}
	for change, want := range map[string]string{
		"+conf/a [core]\nfsmonitor=x": "changed core.fsmonitor,core.hookspath,include.path",
		"+b [core]\nx=1":              "changed core.x",
		"+conf/c [core]\nx=1":         "changed core.x,include.path",
		"-conf/c":                     "changed include.path",
		"@conf":                       "link",
		"@conf/a":                     "link",
		"+h/x x":                      "hook",
		"@h":                          "hook",
		"+conf/d x":                   "",
	} {
		require.Equal(t, want, judge(t, was, change), change)
	}
}

// TestLinks checks that the targets of the user's links in a repository count
// as parts of it.
func TestLinks(t *testing.T) {
	for name, tt := range map[string]struct {
		was  files
		runs map[string]string
	}{
		"hooks":      {files{".git/": "", ".git/hooks@": "../h"}, map[string]string{"+h/x x": "hook", "@h": "hook", "+g/x x": ""}},
		"a hook":     {files{".git/": "", ".git/hooks/pre-push@": "../../tools/push"}, map[string]string{"+tools/push x": "hook", "-tools/push": "hook", "+tools/x x": ""}},
		"hooks path": {files{".git/": "", ".git/config": "[core]\nhooksPath=a", "a@": "b", "b@": "c/d"}, map[string]string{"+c/d/x x": "hook", "@a": "hook", "+b/x x": ""}},
		"config":     {files{".git/": "", ".git/config@": "../c", "c": "[core]\nhooksPath=h"}, map[string]string{"+c [core]\nx=1": "changed core.hookspath,core.x", "+h/x x": "hook"}},
		"git":        {files{".git@": "gd", "gd/config": "[core]\nhooksPath=h"}, map[string]string{"+h/x x": "hook", "+gd/config [a]\nb=c": "changed a.b,core.hookspath"}},
		"worktree":   {files{"w/.git": "gitdir: ../x.git/worktrees/w", "x.git/hooks@": "../h"}, map[string]string{"+w/a x": "", "+h/a x": ""}},
		"elsewhere":  {files{".git/": "", ".git/hooks@": "/usr/hooks"}, map[string]string{"!h/pre-push x": "hook", "+h/x x": ""}},
		"endless":    {files{".git/": "", ".git/hooks@": "hooks"}, map[string]string{"!h/pre-push x": "hook"}},
	} {
		for change, want := range tt.runs {
			require.Equal(t, want, judge(t, tt.was, change), "%s %s", name, change)
		}
	}
}

// TestSamples checks that files of git that it never runs may be removed, also
// with their folder.
func TestSamples(t *testing.T) {
	was := files{".git/hooks/": "", ".git/": "", ".git/config": "", ".git/hooks/pre-commit": "x"}
	require.Empty(t, judge(t, was, "-.git/hooks/a.sample", "-.git/hooks"))
	require.Empty(t, judge(t, was, "-.git/hooks"))
	require.Equal(t, "hook", judge(t, was, "-.git/hooks", "-.git/hooks/pre-commit"))
	require.Equal(t, "hook", judge(t, files{}, "-.git/hooks"), "a link to hooks")
}

func TestWholeRepositories(t *testing.T) {
	was := files{".git/config": "[core]\nbare = false\n", ".git/hooks/x": "x"}
	require.Equal(t, "changed core.bare", judge(t, was, "-.git/config"))
	require.Empty(t, judge(t, was, "-.git/HEAD", "-.git/config"))
	require.Equal(t, "hook", judge(t, was, "-.git/config", "-.git/hooks/x"))
	require.Empty(t, judge(t, was, "-.git/HEAD", "-.git/hooks/x"))
	// a revert restores a repository, with the hooks that were written
	// meanwhile
	was = files{".git/": "", ".git/config": "[core]\nhooksPath = h\n", "w/.git": "gitdir: ../.git/worktrees/w", "v/.git": "gitdir: ../x.git"}
	require.Equal(t, "changed core.hookspath", judge(t, was, "-.git/HEAD", "-.git/config"))
	require.Equal(t, "link", judge(t, was, "-w/.git"))
	require.Empty(t, judge(t, was, "-v/.git"))
}

func TestHooksPath(t *testing.T) {
	for name, tt := range map[string]struct {
		was   files
		hooks []string
		other []string
	}{
		"relative": {
			files{".git/": "", ".git/config": "[core]\n\thooksPath = .husky/_\n"},
			[]string{"+.husky/_/pre-commit x", "-.husky/_/h", "@.husky/_", "+.husky/_/a/b x"},
			[]string{"+.husky/pre-commit x", "+x/.husky/_/pre-commit x", "/.husky/_"},
		},
		"absolute": {
			files{".git/": "", ".git/config": "[core]\n\thooksPath = /srv/ws/ci/hooks\n"},
			[]string{"+ci/hooks/pre-commit x"},
			[]string{"+ci/x x"},
		},
		"elsewhere": {
			files{".git/": "", ".git/config": "[core]\n\thooksPath = /etc/hooks\n"}, nil, []string{"+etc/hooks/x x"},
		},
		"nested": {
			files{"a/.git/": "", "a/.git/config": "[core]\nhooksPath=h", "a/.git/config.worktree": "[core]\nhooksPath=w"},
			[]string{"+a/h/x x", "+a/w/x x"},
			[]string{"+h/x x"},
		},
		"above": {
			files{"a/.git/": "", "a/.git/config": "[core]\nhooksPath=../h"}, nil, []string{"+a/x x"},
		},
		"everything": {
			files{".git/": "", ".git/config": "[core]\nhooksPath=."}, []string{"+x y"}, nil,
		},
		"worktree": {
			files{"wt/.git": "gitdir: /srv/ws/.git/worktrees/wt\n", ".git/": "", ".git/config": "[core]\nhooksPath=h"},
			[]string{"+wt/h/x x", "+h/x x"},
			[]string{"+wt/x x"},
		},
		"unknown": {
			files{"wt/.git": "nonsense", ".git/": "", ".git/config": "nonsense"}, nil, []string{"+wt/h/x x"},
		},
	} {
		for _, c := range tt.hooks {
			require.Equal(t, "hook", judge(t, tt.was, c), "%s %s", name, c)
		}
		for _, c := range tt.other {
			require.Empty(t, judge(t, tt.was, c), "%s %s", name, c)
		}
	}
}

func TestConfig(t *testing.T) {
	const old = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n[remote \"origin\"]\n\turl = x\n"
	for name, tt := range map[string]struct{ path, before, after, want string }{
		"nothing":          {".git/config", old, "# a\n" + old + "; b\n\n", ""},
		"a value":          {".git/config", old, strings.Replace(old, "false", "true", 1), "changed core.bare"},
		"a key":            {".git/config", old, old + "[core]\nfsmonitor = sh\n", "changed core.fsmonitor"},
		"one more value":   {".git/config", old, old + "[remote \"origin\"]\nurl = y", "changed remote.*.url"},
		"one less":         {".git/config", old, "[core]\n", "changed core.bare,core.repositoryformatversion,remote.*.url"},
		"subsections":      {".git/config", "[a \"B\"]\nk=1", "[a \"b\"]\nk=1", "changed a.*.k"},
		"case":             {".git/config", "[A]\nK=1", "[a]\nk=1", ""},
		"an alias":         {".git/config", "", "[alias] x = !sh", "changed alias.x"},
		"of a worktree":    {".git/worktrees/w/config.worktree", "", "[core]\nx", "changed core.x"},
		"of a submodule":   {".git/modules/sub/config", "", "[core]\nworktree = ../../../sub\nbare=no", "changed core.bare"},
		"far away":         {".git/modules/sub/config", "", "[core]\nworktree = ../../../../sub", "changed core.worktree"},
		"absolute":         {".git/modules/sub/config", "", "[core]\nworktree = /home", "changed core.worktree"},
		"a branch":         {".git/config", old, old + "[branch \"x\"]\nremote = origin\nmerge = refs/heads/x\n", "changed branch.*.merge,branch.*.remote"},
		"a branch of URLs": {".git/config", old, old + "[branch \"x\"]\nremote = https://evil\n", "changed branch.*.remote=url"},
		"unreadable":       {".git/config", old, "UNREADABLE", "changed ?"},
		"no grammar":       {".git/config", old, "[core\nx = y", "changed ?"},
	} {
		require.Equal(t, tt.want, judge(t, files{tt.path: tt.before}, "+"+tt.path+" "+tt.after), name)
	}
	require.Equal(t, "new core.x", judge(t, files{}, "+.git/config [core]\nx=1"))
	require.Equal(t, "new ?", judge(t, files{}, "+.git/config UNREADABLE"))
	require.Equal(t, "link", judge(t, files{}, "@.git/config"))
	require.Empty(t, judge(t, files{}, "/.git/config"))
}

func TestCredentials(t *testing.T) {
	for _, text := range []string{
		"[remote \"o\"]\n\turl = https://user:secret@example.com/x.git",
		"url = https://ghp_0123456789012345678901234567890123@github.com/x",
		"[url \"https://x:y@h/\"]\ninsteadOf = z",
		"url = \"https://user:\\\nsecret@h\"",
		"[http]\n\textraHeader = AUTHORIZATION: basic x",
		"[http \"https://h\"] extraheader=x",
		"[sendemail]\nsmtpPass = x", "[a]\nToken=x", "[user]\npassword = x",
		"url = http://:pw@h/",
	} {
		require.True(t, gitguard.HoldsCredentials([]byte(text)), text)
	}
	for _, text := range []string{
		"", "[remote \"o\"]\n\turl = https://example.com/x.git", "url = git@github.com:a/b", "url = ssh://git@github.com/a", "url = https://alice@github.com/a",
		"url = https://h/a@b:c", "[credential]\n\thelper = store", "[http]\nextraheader =", "[core]\naskpass", "url = http://h:80/x@y",
	} {
		require.False(t, gitguard.HoldsCredentials([]byte(text)), text)
	}
}

// TestLooks checks that the guard reads only the folders above a path, once for
// each call.
func TestLooks(t *testing.T) {
	for name, tt := range map[string]struct {
		change string
		want   []string
	}{
		"a file":          {"a/b/c.go", []string{"HEAD", "a/HEAD", "a/b/HEAD"}},
		"a telling name":  {"a/config/c.go", []string{"HEAD", "a/HEAD", "a/config/HEAD"}},
		"in a git folder": {".git/hooks/a", []string{"HEAD", ".git/HEAD", ".git/hooks/HEAD"}},
	} {
		var read []string
		look := func(name string) ([]byte, error) {
			read = append(read, name)
			return nil, fs.ErrNotExist
		}
		c := gitguard.Change{Path: tt.change, Type: "file", After: func() ([]byte, error) { return nil, nil }}
		g := gitguard.New("/srv/ws", gitguard.Files{Read: look, List: files{}.list, Link: files{}.link}, []gitguard.Change{c})
		g.Facts(c)
		g.Facts(c)
		require.ElementsMatch(t, tt.want, read, name)
	}
	g := gitguard.New("/", gitguard.Files{Read: func(string) ([]byte, error) { panic("nothing is read for a folder") }}, nil)
	require.Nil(t, g.Facts(gitguard.Change{Path: "a/hooks", Type: "dir"}))
}
