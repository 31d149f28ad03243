package record

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Append adds a line to the file, which is made if need be.
func Append[Line any](path string, l Line) (err error) {
	text, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("record a run: %w", err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("record a run: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("record a run: %w", err)
	}
	return nil
}

// ReadFile returns the lines of the file, none when there is no file.
func ReadFile[Line any](path string) (lines []Line, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	scan := bufio.NewScanner(file)
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var l Line
		if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, len(lines)+1, err)
		}
		lines = append(lines, l)
	}
	return lines, scan.Err()
}
