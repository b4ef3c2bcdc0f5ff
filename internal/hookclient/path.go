package hookclient

// Folder and Socket are the places of the resident process below the user's
// folder for state.
const (
	Folder = "remit/agents"
	Socket = "socket"
)

// Home returns the user's folder for state, as cmd/remit/internal/state does.
func Home(env func(string) (string, bool)) string {
	if dir, _ := env("XDG_STATE_HOME"); absolute(dir) {
		return dir
	}
	return systemHome(env)
}
