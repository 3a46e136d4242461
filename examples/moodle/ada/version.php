<?php
// The version of the plugin, as Moodle reads it.

defined('MOODLE_INTERNAL') || die();

$plugin->component = 'message_ada';
$plugin->version = 2026112800;
$plugin->requires = 2022112800; // Moodle 4.1
$plugin->maturity = MATURITY_ALPHA;
