"""The search for the layout that costs least. First file to read: `layouts`."""
