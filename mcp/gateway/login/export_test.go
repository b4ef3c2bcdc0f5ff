package login

// Private is for tests: nobody can be reached by a name that is not of this machine.
var Private = private
