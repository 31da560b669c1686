"""What a terminal can do for somebody who types: complete the words, and show the manual."""
