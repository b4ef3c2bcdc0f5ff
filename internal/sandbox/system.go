package sandbox

import (
	"os"
	"slices"
	"strings"
)

// Path is the search path for a program without a slash, if its environment has
// no PATH. It lists the folders of the system and of toolchains that System
// shows.
const Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin:/usr/local/cargo/bin:/usr/local/node/bin:/usr/lib/go/bin:/usr/games"

// System lists the files that every program needs: programs, libraries, and
// what these read in /etc. None of them is secret. It omits files that can hold
// keys, passwords or tokens (shadow, ssl/private, the keys of ssh, npmrc,
// pip.conf, wgetrc, fstab, environment). It also omits files that identify this
// machine (machine-id, hostname, resolv.conf).
func System() []string {
	return append(systems(), versioned()...)
}

func systems() []string {
	all := []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"}
	for _, name := range []string{
		"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "passwd", "group",
		"nsswitch.conf", "host.conf", "gai.conf", "hosts", "services", "protocols", "rpc", "networks", "ethertypes",
		"localtime", "timezone", "locale.alias", "locale.conf", "os-release", "lsb-release", "debian_version", "redhat-release", "alpine-release",
		"mime.types", "magic", "magic.mime", "mailcap", "papersize", "terminfo", "inputrc", "shells", "bash.bashrc", "login.defs",
		"ssl/certs", "ssl/openssl.cnf", "pki/tls/certs", "pki/tls/openssl.cnf", "pki/ca-trust/extracted", "ca-certificates", "ca-certificates.conf",
		"crypto-policies", "ssh/ssh_config", "ssh/ssh_config.d", "ssh/moduli",
		"gitconfig", "gitattributes", "vim", "nanorc", "screenrc", "tmux.conf", "manpath.config", "groff", "debuginfod", "gdb",
		"perl", "lua", "ghc", "maven/m2.conf", "maven/logging", "R/Renviron", "R/ldpaths", "R/repositories", "R/Makeconf",
		"postgresql-common/user_clusters", "postgresql-common/supported_versions", "postgresql-common/createcluster.conf",
		"sgml", "xml", "texmf", "dictionaries-common", "emacs", "chromium.d", "chromium/master_preferences", "chromium/initial_preferences",
		"fonts", "gtk-2.0", "gtk-3.0", "glvnd", "vulkan", "OpenCL", "alsa",
	} {
		all = append(all, "/etc/"+name)
	}
	return all
}

// versioned returns paths with a version in their name. Of java-17-openjdk it
// omits the folder that can hold passwords. Of php it includes what the command
// line reads.
func versioned() (all []string) {
	for _, name := range namesOf("/etc") {
		switch at := "/etc/" + name; {
		case strings.HasPrefix(name, "java-"):
			for _, part := range namesOf(at) {
				if part != "management" {
					all = append(all, at+"/"+part)
				}
			}
			all = append(all, at+"/management/management.properties")
		case name == "php":
			for _, version := range namesOf(at) {
				all = append(all, at+"/"+version+"/cli", at+"/"+version+"/mods-available")
			}
		case strings.HasPrefix(name, "python"), strings.HasPrefix(name, "ImageMagick-"):
			all = append(all, at)
		}
	}
	return all
}

// namesOf lists a folder. An unreadable folder is empty.
func namesOf(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	names, _ := f.Readdirnames(-1)
	slices.Sort(names)
	return names
}
