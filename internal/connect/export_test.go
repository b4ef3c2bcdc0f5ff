package connect

// ValuesForTest is what a JSON file says.
func ValuesForTest(text []byte) (map[string]any, error) {
	_, body, err := opened(text)
	if err != nil || blank(body) {
		return nil, err
	}
	return jsonFormat{}.values(body)
}
