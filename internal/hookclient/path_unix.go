//go:build unix

package hookclient

// systemHome returns the folder for state that the system has, or "".
func systemHome(env func(string) (string, bool)) string {
	if dir, _ := env("HOME"); absolute(dir) {
		return dir + "/.local/state"
	}
	return ""
}

// absolute reports whether a path is absolute.
func absolute(dir string) bool { return dir != "" && dir[0] == '/' }
