package process

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/remit-dev/remit/internal/sandbox"
)

// Environment is what a program gets of the environment of its caller. The zero
// Environment is empty.
type Environment struct {
	// Vars are variables beside those of the driver. PATH and HOME are not in
	// it.
	Vars map[string]string
	// Path is the search path for programs without a slash, in place of the
	// driver's.
	Path string
	// Home is the caller's home folder. The program sees an empty folder there
	// that it can write, with what Readable has in it. It is gone after the
	// call. Empty: HOME is /tmp.
	Home string
	// Readable are absolute paths of the host that the program can read and
	// execute, such as toolchains. Run leaves out a path that contains a root or
	// the scratch folder, or that lies in one.
	Readable []string
	// Caches are absolute paths of folders that the program can read and
	// write, such as caches of packages and of compilers. No other program sees
	// what it writes there: it is gone after the call. They must not touch the
	// roots either.
	Caches []string
}

// passed matches the names of the variables that programs need of their
// caller's environment and that hold no secrets.
var passed = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(LANG|LANGUAGE|LC_[A-Z_]+|TZ|TERM|COLORTERM|TERM_PROGRAM|COLUMNS|LINES|NO_COLOR|FORCE_COLOR|CLICOLOR|CLICOLOR_FORCE` +
		`|USER|LOGNAME|SHELL|EDITOR|VISUAL|PAGER|GIT_PAGER|GIT_EDITOR|GIT_TERMINAL_PROMPT|GIT_(AUTHOR|COMMITTER)_(NAME|EMAIL|DATE)|CI|DEBUG|VERBOSE|MAKEFLAGS` +
		`|CC|CXX|AR|LD|CFLAGS|CXXFLAGS|CPPFLAGS|LDFLAGS|PKG_CONFIG_PATH|SOURCE_DATE_EPOCH` +
		`|GOPATH|GOROOT|GOMODCACHE|GOFLAGS|GOOS|GOARCH|GOARM|GOAMD64|GOTOOLCHAIN|GOMAXPROCS|GODEBUG|GOEXPERIMENT|GO111MODULE|GOWORK|CGO_ENABLED|CGO_[A-Z]+FLAGS` +
		`|NODE_ENV|NODE_PATH|NODE_OPTIONS|NVM_DIR|NVM_BIN|FNM_DIR|VOLTA_HOME|PNPM_HOME|BUN_INSTALL|DENO_INSTALL` +
		`|RUSTUP_HOME|RUSTUP_TOOLCHAIN|CARGO_HOME|RUST_BACKTRACE|RUST_LOG|RUSTFLAGS` +
		`|PYTHON(PATH|HASHSEED|UNBUFFERED|DONTWRITEBYTECODE|WARNINGS|UTF8|IOENCODING)|VIRTUAL_ENV|CONDA_PREFIX|CONDA_DEFAULT_ENV|PYENV_(ROOT|VERSION)` +
		`|ASDF_(DIR|DATA_DIR)|MISE_DATA_DIR|RBENV_ROOT|GEM_HOME|GEM_PATH|JAVA_HOME|SDKMAN_DIR|DOTNET_ROOT|CLAUDECODE)$`)
})

// CallerEnvironment returns what programs get of the environment of a process
// in the form of os.Environ: its search path and its home folder, variables
// that do not hold secrets, and the toolchains and package caches below the
// search path and the home folder, to read. It adds the named variables,
// whatever they hold.
func CallerEnvironment(environ []string, named ...string) Environment {
	all := map[string]string{}
	for _, assignment := range environ {
		if name, value, ok := strings.Cut(assignment, "="); ok {
			all[name] = value
		}
	}
	e := Environment{Vars: map[string]string{}}
	for name, value := range all {
		if passed().MatchString(name) || slices.Contains(named, name) && name != "PATH" && name != "HOME" {
			e.Vars[name] = value
		}
	}
	if home := all["HOME"]; filepath.IsAbs(home) {
		e.Home = filepath.Clean(home)
	}
	found := toolchains{home: e.Home, vars: all, paths: map[string]bool{}, caches: map[string]bool{}}
	e.Path = found.searchPath(all["PATH"])
	found.known()
	e.Readable, e.Caches = slices.Sorted(maps.Keys(found.paths)), slices.Sorted(maps.Keys(found.caches))
	return e
}

// toolchains finds programs outside of the system's folders.
type toolchains struct {
	home   string
	vars   map[string]string
	paths  map[string]bool // with their links resolved
	caches map[string]bool // with their links resolved
}

// homeTools are toolchains in a home folder. They do not include the files in
// which such tools keep passwords and tokens.
func homeTools() []string {
	return []string{
		".asdf", ".tool-versions", ".asdfrc", ".local/share/mise", ".sdkman/candidates",
		".nvm", ".node-version", ".local/share/fnm", ".fnm", ".volta", ".nodenv", ".local/share/pnpm", ".bun/bin", ".deno/bin",
		"go/bin", "sdk",
		".rustup", ".cargo/bin", ".cargo/env", ".cargo/config.toml",
		".pyenv", ".local/lib", ".local/pipx", ".local/share/pipx", ".local/share/uv", "miniconda3", "anaconda3", "miniforge3",
		".rbenv", ".rvm", ".gem", ".m2/wrapper", ".gradle/wrapper", ".jenv", ".dotnet",
	}
}

// homeCaches are caches of packages and compilers in a home folder.
func homeCaches() []string {
	return []string{
		".cache/go-build", "go/pkg/mod", ".npm/_cacache", ".cache/yarn", ".cache/node", ".bun/install/cache", ".cache/deno", ".cargo/registry", ".cargo/git",
		".cache/pip", ".cache/uv", ".cache/pypoetry", ".m2/repository", ".gradle/caches", ".ivy2/cache", ".nuget/packages", ".ccache", ".cache/ccache", ".cache/sccache",
	}
}

// cacheVariables are variables that name a folder of a cache, and which part
// of it is the cache.
func cacheVariables() map[string]string {
	return map[string]string{
		"GOCACHE": ".", "GOMODCACHE": ".", "GOPATH": "pkg/mod", "CARGO_HOME": "registry", "npm_config_cache": "_cacache", "PIP_CACHE_DIR": ".", "UV_CACHE_DIR": ".", "CCACHE_DIR": ".",
	}
}

// toolVariables are variables that name a folder of a toolchain, and what
// programs see of it.
func toolVariables() map[string][]string {
	return map[string][]string{
		"GOROOT": {"."}, "GOPATH": {"bin"}, "RUSTUP_HOME": {"."}, "CARGO_HOME": {"bin", "env", "config.toml"},
		"NVM_DIR": {"."}, "FNM_DIR": {"."}, "VOLTA_HOME": {"."}, "PNPM_HOME": {"."}, "BUN_INSTALL": {"bin"}, "DENO_INSTALL": {"bin"},
		"PYENV_ROOT": {"."}, "ASDF_DIR": {"."}, "ASDF_DATA_DIR": {"."}, "MISE_DATA_DIR": {"."}, "RBENV_ROOT": {"."}, "GEM_HOME": {"."},
		"JAVA_HOME": {"."}, "SDKMAN_DIR": {"candidates"}, "DOTNET_ROOT": {"."}, "CONDA_PREFIX": {"."}, "VIRTUAL_ENV": {"."},
	}
}

// known adds the known toolchains that exist.
func (t *toolchains) known() {
	if t.home != "" {
		for _, name := range homeTools() {
			t.add(t.paths, filepath.Join(t.home, name))
		}
		for _, name := range homeCaches() {
			t.add(t.caches, filepath.Join(t.home, name))
		}
	}
	for variable, parts := range toolVariables() {
		for _, part := range parts {
			t.addVariable(t.paths, variable, part)
		}
	}
	for variable, part := range cacheVariables() {
		t.addVariable(t.caches, variable, part)
	}
}

// addVariable adds a part of each folder that a variable lists.
func (t *toolchains) addVariable(to map[string]bool, variable, part string) {
	for dir := range strings.SplitSeq(t.vars[variable], string(filepath.ListSeparator)) {
		if filepath.IsAbs(dir) {
			t.add(to, filepath.Join(dir, part))
		}
	}
}

// searchPath returns a search path with the folders that exist, and adds them.
// Of a folder bin outside of the home folder it adds the whole installation,
// because programs have their libraries beside it.
func (t *toolchains) searchPath(path string) string {
	var all []string
	for dir := range strings.SplitSeq(path, string(filepath.ListSeparator)) {
		if !filepath.IsAbs(dir) {
			continue
		}
		real := t.add(t.paths, dir)
		if real == "" || slices.Contains(all, real) {
			continue
		}
		all = append(all, real)
		if base := filepath.Base(real); (base == "bin" || base == "sbin") && (t.home == "" || !within(t.home, real)) && filepath.Dir(filepath.Dir(real)) != "/" {
			t.add(t.paths, filepath.Dir(real))
		}
	}
	return strings.Join(all, string(filepath.ListSeparator))
}

// add adds a path with its links resolved, and returns that. It returns "" for
// one that does not exist or that contains more than a toolchain.
func (t *toolchains) add(to map[string]bool, path string) string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil || real == "/" || t.home != "" && within(real, t.home) {
		return ""
	}
	to[real] = true
	return real
}

// shown returns the paths that a program sees for its environment, its caches
// and its home folder. None of them touches the roots or the scratch folder.
func (d *Driver) shown(e Environment, roots []sandbox.Root) (paths, caches []string, home string) {
	apart := []string{d.cfg.Scratch}
	for _, r := range roots {
		apart = append(apart, r.Dir)
	}
	caches = disjoint(e.Caches, apart)
	paths = disjoint(e.Readable, apart)
	home = e.Home
	taken := slices.Concat([]string{"/proc", "/dev", "/run", "/sys"}, sandbox.System(), paths, apart)
	if home == "" || home == "/" || home == "/tmp" || home == "/var/tmp" || slices.ContainsFunc(taken, func(other string) bool { return within(other, home) }) {
		home = ""
	}
	return paths, caches, home
}

// disjoint returns the paths that exist and neither contain a path of apart nor
// lie in one. Links are resolved. Of paths in one another it returns the upper.
func disjoint(all, apart []string) (kept []string) {
	var real []string
	for _, path := range all {
		path, err := filepath.EvalSymlinks(path)
		if err == nil && !slices.ContainsFunc(apart, func(other string) bool { return within(path, other) || within(other, path) }) {
			real = append(real, path)
		}
	}
	slices.Sort(real)
	for _, path := range real {
		if !slices.ContainsFunc(kept, func(upper string) bool { return within(upper, path) }) {
			kept = append(kept, path)
		}
	}
	return kept
}

// homeFolder returns the home folder of a program. One in a root is the
// caller's.
func (e Environment) homeFolder(shown string, roots []sandbox.Root) string {
	if shown != "" || slices.ContainsFunc(roots, func(r sandbox.Root) bool { return e.Home != "" && within(r.Dir, e.Home) }) {
		return e.Home
	}
	return "/tmp"
}
