package hookclient

// systemHome returns the folder for state that the system has, or "".
func systemHome(env func(string) (string, bool)) string {
	if dir, _ := env("LOCALAPPDATA"); len(dir) > 2 && dir[1] == ':' {
		return dir
	}
	if dir, _ := env("USERPROFILE"); len(dir) > 2 && dir[1] == ':' {
		return dir + `\.local\state`
	}
	return ""
}

// absolute reports whether a path is absolute.
func absolute(dir string) bool {
	return len(dir) > 2 && dir[1] == ':' && (dir[2] == '\\' || dir[2] == '/') || len(dir) > 1 && dir[0] == '\\' && dir[1] == '\\'
}
