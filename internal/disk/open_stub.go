package disk

func openRoot(string) (Root, error) { return nil, ErrUnsupported }
