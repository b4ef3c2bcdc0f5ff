package learn

import (
	"regexp"
	"slices"
	"strings"

	"github.com/remit-dev/remit/perm"
)

// The texts that the policy contains too: a decision here and there is by the
// same expressions.
const (
	plainPattern   = `^[\w.,:=+%^~*?{}\[\]/#-]+$`
	outsidePattern = `(^|[=:,\s])[/~]|(^|[/=:\s])\.\.(/|\s|$)|://`
	guardPattern   = `(?i)(^|[/=:\s])\.(git|ssh|aws|gnupg|kube|docker|npmrc|netrc|pypirc|pgpass|git-credentials|envrc|claude|codex|cursor|gemini|opencode|mcp\.json|vscode|idea|husky|devcontainer)(/|\s|$)`
	dotPattern     = `(^|/)\.`
	fetchedPattern = `(^|\s)([\w-]+\.)+[a-z]{2,}/\S*@|\w@[\w-]+\.`
	secretPattern  = `(?i)(^|[/=:@\s])(credentials(\.\w+)?|_netrc|id_(rsa|dsa|ecdsa|ed25519)[^/]*)(/|\s|$)|\.(env|pem|key|p12|pfx|p8|ppk|jks|kdbx|tfstate)([~.][\w.]*)?(/|\s|$)`
	scratchPattern = `^[\w./%+,-]+$`
	setsPattern    = `(?:^|[\s;&|(])([A-Za-z_]\w*=[^\s;&|)]*)`
)

var (
	plainWord   = regexp.MustCompile(plainPattern)
	outsideWord = regexp.MustCompile(outsidePattern)
	guardWord   = regexp.MustCompile(guardPattern)
	dotName     = regexp.MustCompile(dotPattern)
	fetchedWord = regexp.MustCompile(fetchedPattern)
	secretWord  = regexp.MustCompile(secretPattern)
	scratchWord = regexp.MustCompile(scratchPattern)
	setsWord    = regexp.MustCompile(setsPattern)

	subcommand = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	shortName  = regexp.MustCompile(`^[\w.-]{1,40}$`)
)

// near reports whether a word names nothing outside the workspace, no settings
// of agents, editors and git, no usual secret, and nothing that a host serves.
func near(word string) bool {
	return !slices.ContainsFunc([]*regexp.Regexp{outsideWord, guardWord, secretWord, fetchedWord}, func(e *regexp.Regexp) bool { return e.MatchString(word) })
}

func plain(word string) bool { return plainWord.MatchString(word) && near(word) }

// The arguments of these programs decide more than files. No record tells it, so
// this file lists them.
var (
	// They run the program that their arguments name: learned only as a whole.
	launchers = []string{
		"env", "xargs", "command", "exec", "eval", "builtin", "timeout", "time", "nice", "nohup", "setsid", "sudo", "su", "doas", "ssh", "watch", "strace",
		"gdb", "dlv", "parallel", "busybox", "unshare", "chroot", "nsenter", "script", "trap", "source", ".", "alias", "dd", "nc", "socat", "docker", "podman",
	}
	// They run code from a file, an argument or their input: only from a file of
	// the workspace, with known options.
	interpreters = []string{
		"sh", "bash", "dash", "zsh", "ksh", "fish", "python", "python2", "python3", "node", "deno", "bun", "perl", "ruby", "php", "lua", "Rscript",
		"awk", "gawk", "mawk", "vim", "vi", "ed", "ex", "emacs",
	}
	// Some of their options run programs, write files or send data: only known
	// options.
	optioned = []string{"find", "tar", "make", "gmake", "rsync", "curl", "wget", "zip", "sort", "rg", "fd", "tee"}

	// Their first argument is a file or a text, also if it is one word.
	wordless = []string{
		"cd", "mkdir", "rmdir", "rm", "mv", "cp", "ls", "cat", "head", "tail", "wc", "echo", "printf", "grep", "egrep", "fgrep", "sed", "cut", "tr", "touch",
		"chmod", "diff", "cmp", "file", "stat", "du", "which", "test", "[", "export", "set", "jq", "tree", "basename", "dirname", "ln", "sleep", "uniq", "kill",
	}
	// They only print or compare their arguments, which can be known only at run
	// time.
	printers = []string{"echo", "printf", "test", "["}

	versionOptions = []string{"--version", "-version", "-V", "-v", "--help", "-h", "version"}

	// Options that give an interpreter code, and options of others that run code.
	codeOptions = []string{
		"-", "-c", "-e", "-E", "-m", "-p", "-r", "-i", "--eval", "--print", "--require", "--import", "-exec", "-execdir", "-ok", "-okdir", "-fprint", "--pre",
	}
)

// form is how the arguments of a program are learned.
type form int

const (
	free        form = iota // each argument by itself
	withOptions             // options are known ones
	fromFile                // the same, and one argument is a file
	whole                   // all arguments together
)

func formOf(program string, confined bool) form {
	name := program[strings.LastIndexByte(program, '/')+1:]
	switch {
	case !confined || slices.Contains(launchers, name):
		return whole
	case slices.Contains(interpreters, name):
		return fromFile
	case slices.Contains(optioned, name):
		return withOptions
	default:
		return free
	}
}

// assignments returns the variables that a script sets, as far as its text
// tells.
func assignments(script string) (all []string) {
	for _, m := range setsWord.FindAllStringSubmatch(script, -1) {
		all = append(all, m[1])
	}
	return all
}

// words returns the known arguments of a command; some is false if one is
// known only at run time.
func words(c perm.CommandFacts) (list []string, all bool) {
	all = true
	for _, a := range c.Args {
		if a == nil {
			all = false
			continue
		}
		list = append(list, *a)
	}
	return list, all
}
